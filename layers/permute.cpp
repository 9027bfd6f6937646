#include "layers/permute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Permute::Permute(std::vector<int> o) : order(std::move(o)) {
  std::vector<bool> seen(order.size());
  bool permutes = order.size() >= 2 && order.size() <= size_t(Shape::max_rank) && order[0] == 0;
  for (const int axis : order) {
    permutes = permutes && axis >= 0 && axis < int(order.size()) && !seen[size_t(axis)];
    if (permutes) seen[size_t(axis)] = true;
  }
  if (!permutes)
    throw Error(fmt::format("{} wants an order of 2 to {} dimensions, each once and the samples (0) first",
                            str(), Shape::max_rank));
}

std::string Permute::str() const { return fmt::format("permute({})", fmt::join(order, ", ")); }

Signature Permute::infer(std::span<const Shape> x) const {
  check_inputs("permute", x, 1, int(order.size()));
  Signature s;
  s.y = {.shape = x[0]};
  for (int i = 0; i < x[0].rank(); ++i) s.y.shape[i] = x[0][order[size_t(i)]];
  return s;
}

NodeId permute(Graph& graph, std::string name, NodeId x, std::vector<int> order) {
  return graph.add(std::move(name), std::make_shared<Permute>(std::move(order)), {x});
}

}  // namespace antichain
