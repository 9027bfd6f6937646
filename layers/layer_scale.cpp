#include "layers/layer_scale.h"

#include <fmt/format.h>

#include "layers/check_inputs.h"

namespace antichain {

std::string LayerScale::str() const { return fmt::format("layer_scale({})", options.init); }

Signature LayerScale::infer(std::span<const Shape> x) const {
  check_inputs("layer_scale", x, 1, 4);
  Signature s;
  s.y = {.shape = x[0]};
  s.params = {{"", {x[0][1], 1, 1}, Initialiser::constant(options.init)}};
  s.forward_flops = double(x[0].elements());
  return s;
}

NodeId layer_scale(Graph& graph, std::string name, NodeId x, LayerScaleOptions options) {
  return graph.add(std::move(name), std::make_shared<LayerScale>(options), {x});
}

}  // namespace antichain
