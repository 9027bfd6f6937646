#include "layers/flatten.h"

#include "layers/check_inputs.h"

namespace antichain {

Signature Flatten::infer(std::span<const Shape> x) const {
  check_inputs("flatten", x, 1, 4);
  Signature s;
  s.y = {.shape = {x[0][0], x[0].elements() / x[0][0]}};
  return s;
}

NodeId flatten(Graph& graph, std::string name, NodeId x) {
  return graph.add(std::move(name), std::make_shared<Flatten>(), {x});
}

}  // namespace antichain
