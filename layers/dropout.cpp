#include "layers/dropout.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Dropout::Dropout(double probability, std::string name) : p(probability), node_name(std::move(name)) {
  if (!(p >= 0 && p < 1)) throw Error(fmt::format("dropout '{}' wants 0 <= p < 1, not {}", node_name, p));
}

std::string Dropout::str() const { return fmt::format("dropout({}, {})", p, node_name); }

Signature Dropout::infer(std::span<const Shape> x) const {
  check_inputs("dropout", x, 1, 0);
  Signature s;
  s.y = {.shape = x[0]};
  s.forward_flops = double(x[0].elements());
  return s;
}

NodeId dropout(Graph& graph, std::string name, NodeId x, double p) {
  auto op = std::make_shared<Dropout>(p, name);
  return graph.add(std::move(name), std::move(op), {x});
}

}  // namespace antichain
