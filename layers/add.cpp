#include "layers/add.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Signature Add::infer(std::span<const Shape> x) const {
  check_inputs("add", x, 2, 0);
  if (x[0] != x[1]) throw Error(fmt::format("add cannot add {} and {}", x[0].str(), x[1].str()));
  Signature s;
  s.y = {.shape = x[0]};
  s.forward_flops = double(x[0].elements());
  return s;
}

NodeId add(Graph& graph, std::string name, NodeId a, NodeId b) {
  return graph.add(std::move(name), std::make_shared<Add>(), {a, b});
}

}  // namespace antichain
