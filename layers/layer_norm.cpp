#include "layers/layer_norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

LayerNorm::LayerNorm(LayerNormOptions o) : options(o) {
  if (!(o.eps > 0)) throw Error(fmt::format("{} wants eps > 0", str()));
  if (o.channels && o.over.rank() > 0)
    throw Error(
        fmt::format("{} is over the channels of a pixel, so it can't also be over {}", str(), o.over.str()));
}

std::string LayerNorm::str() const {
  const std::string rows = options.channels          ? "channels"
                           : options.over.rank() > 0 ? options.over.str()
                                                     : "last axis";
  return fmt::format("layer_norm({}, eps {}{}{})", rows, options.eps,
                     !options.affine ? ", not affine"
                     : !options.bias ? ", no bias"
                                     : "",
                     options.centred ? "" : ", not centred");
}

Shape LayerNorm::row(const Shape& x) const {
  if (options.channels) return {x[1]};
  return options.over.rank() > 0 ? options.over : Shape{x[x.rank() - 1]};
}

Signature LayerNorm::infer(std::span<const Shape> x) const {
  check_inputs("layer_norm", x, 1, options.channels ? 4 : 0);
  const Shape& over = options.over;
  if (x[0].rank() < 2 || over.rank() >= x[0].rank() ||
      !std::equal(over.begin(), over.end(), x[0].end() - over.rank()))
    throw Error(fmt::format("{} does not fit {}: the last axes must be {}, behind at least one other", str(),
                            x[0].str(), over.rank() > 0 ? over.str() : "what it normalises"));
  const Shape weight = row(x[0]);
  Signature s;
  s.y = {.shape = x[0]};
  if (options.affine) s.params.push_back({"weight", weight, Initialiser::constant(1)});
  if (options.affine && options.bias) s.params.push_back({"bias", weight, Initialiser::constant(0)});
  // Mean 1, variance 3, normalise and scale 4 per element.
  s.forward_flops = 8.0 * double(x[0].elements());
  return s;
}

NodeId layer_norm(Graph& graph, std::string name, NodeId x, LayerNormOptions options) {
  return graph.add(std::move(name), std::make_shared<LayerNorm>(options), {x});
}

NodeId rms_norm(Graph& graph, std::string name, NodeId x, RmsNormOptions o) {
  return layer_norm(graph, std::move(name), x,
                    {.over = o.over, .eps = o.eps, .affine = o.affine, .bias = false, .centred = false});
}

}  // namespace antichain
