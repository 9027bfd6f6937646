#include "layers/global_pool.h"

#include "layers/check_inputs.h"

namespace antichain {

Signature GlobalAveragePool::infer(std::span<const Shape> x) const {
  check_inputs("global_average_pool", x, 1, 4);
  Signature s;
  s.y = {.shape = {x[0][0], x[0][1], 1, 1}};
  s.forward_flops = double(x[0].elements());
  return s;
}

NodeId global_average_pool(Graph& graph, std::string name, NodeId x) {
  return graph.add(std::move(name), std::make_shared<GlobalAveragePool>(), {x});
}

}  // namespace antichain
