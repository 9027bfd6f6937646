#include "layers/multiply.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Signature Multiply::infer(std::span<const Shape> x) const {
  check_inputs("multiply", x, 2, 0);
  const bool image = x[0].rank() == 4;
  if (x[0] != x[1] && !(image && x[1] == Shape{x[0][0], x[0][1], 1, 1}))
    throw Error(
        fmt::format("multiply cannot multiply {} by {}", x[0].str(), x[1].str()),
        image ? fmt::format("the second factor is of the same shape, or {} x {} x 1 x 1", x[0][0], x[0][1])
              : "the second factor is of the same shape");
  Signature s;
  s.y = {.shape = x[0]};
  s.forward_flops = double(x[0].elements());
  return s;
}

NodeId multiply(Graph& graph, std::string name, NodeId a, NodeId b) {
  return graph.add(std::move(name), std::make_shared<Multiply>(), {a, b});
}

}  // namespace antichain
