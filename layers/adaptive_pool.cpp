#include "layers/adaptive_pool.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

AdaptiveAveragePool::AdaptiveAveragePool(Extent o) : out(o) {
  if (o.h < 1 || o.w < 1) throw Error(fmt::format("{} leaves no pixels", str()));
}

std::string AdaptiveAveragePool::str() const {
  return fmt::format("adaptive_average_pool({})", antichain::str(out));
}

Signature AdaptiveAveragePool::infer(std::span<const Shape> x) const {
  check_inputs("adaptive_average_pool", x, 1, 4);
  Signature s;
  s.y = {.shape = {x[0][0], x[0][1], out.h, out.w}};
  // Windows cover the image about once.
  s.forward_flops = double(std::max(x[0].elements(), s.y.shape.elements()));
  return s;
}

NodeId adaptive_average_pool(Graph& graph, std::string name, NodeId x, Extent out) {
  return graph.add(std::move(name), std::make_shared<AdaptiveAveragePool>(out), {x});
}

}  // namespace antichain
