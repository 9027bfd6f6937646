#include "layers/softmax.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Signature Softmax::infer(std::span<const Shape> x) const {
  check_inputs("softmax", x, 1, 0);
  if (x[0].rank() != 2 && x[0].rank() != 4)
    throw Error(fmt::format("softmax wants an input of 2 or 4 dimensions, not {}", x[0].str()));
  Signature s;
  s.y = {.shape = x[0]};
  s.forward_flops = 5 * double(x[0].elements());  // maximum, difference, exponential, sum, quotient
  return s;
}

NodeId softmax(Graph& graph, std::string name, NodeId x) {
  return graph.add(std::move(name), std::make_shared<Softmax>(), {x});
}

}  // namespace antichain
