#include "layers/relu.h"

#include "layers/check_inputs.h"

namespace antichain {

Signature Relu::infer(std::span<const Shape> x) const {
  check_inputs("relu", x, 1, 0);
  Signature s;
  s.y = {.shape = x[0]};
  s.forward_flops = double(x[0].elements());
  return s;
}

NodeId relu(Graph& graph, std::string name, NodeId x) {
  return graph.add(std::move(name), std::make_shared<Relu>(), {x});
}

}  // namespace antichain
