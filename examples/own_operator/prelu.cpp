#include "prelu.h"

#include "layers/check_inputs.h"

using namespace antichain;

Signature PRelu::infer(std::span<const Shape> x) const {
  check_inputs("prelu", x, 1, 4);
  Signature s;
  s.y = {.shape = x[0]};
  s.params = {{.name = "weight", .shape = {x[0][1]}, .init = Initialiser::constant(0.25f)}};
  s.forward_flops = double(x[0].elements());
  return s;
}

NodeId prelu(Graph& graph, std::string name, NodeId x) {
  return graph.add(std::move(name), std::make_shared<PRelu>(), {x});
}
