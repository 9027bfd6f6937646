#include "layers/interpolate.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Interpolate::Interpolate(InterpolateOptions o) : options(o) {
  if (o.size.has_value() == o.scale.has_value())
    throw Error(fmt::format("{} wants either a size or a scale", str()));
  const bool positive = o.size ? o.size->h > 0 && o.size->w > 0 : o.scale->h > 0 && o.scale->w > 0;
  if (!positive) throw Error(fmt::format("{} has a size or a scale that is not positive", str()));
  if (o.align_corners && o.mode == Interpolation::nearest)
    throw Error(fmt::format("{} cannot align corners: only bilinear interpolation does", str()));
}

std::string Interpolate::str() const {
  const InterpolateOptions& o = options;
  std::string to;
  if (o.size) to += ", size " + antichain::str(*o.size);
  if (o.scale) to += fmt::format(", scale {} x {}", o.scale->h, o.scale->w);
  return fmt::format("interpolate({}{}{})", interpolation_names[size_t(o.mode)], to,
                     o.align_corners ? ", align corners" : "");
}

Signature Interpolate::infer(std::span<const Shape> x) const {
  check_inputs("interpolate", x, 1, 4);
  const InterpolateOptions& o = options;
  Signature s;
  s.y = {.shape = x[0]};
  s.y.shape[2] = o.size ? o.size->h : int64_t(std::floor(double(x[0][2]) * o.scale->h));
  s.y.shape[3] = o.size ? o.size->w : int64_t(std::floor(double(x[0][3]) * o.scale->w));
  if (s.y.shape[2] < 1 || s.y.shape[3] < 1)
    throw Error(fmt::format("{} leaves nothing of {}", str(), x[0].str()));
  // Three interpolations between two numbers, of two products and a sum.
  if (o.mode == Interpolation::bilinear) s.forward_flops = 9 * double(s.y.shape.elements());
  return s;
}

LineMaps line_maps(const Interpolate& op, const Shape& x) {
  const InterpolateOptions& o = op.options;
  const Shape y = op.infer({&x, 1}).y.shape;
  const auto map = [&](int side, std::optional<double> scale) {
    const int64_t in = x[side], out = y[side];
    float step = scale ? float(1 / *scale) : float(in) / float(out);
    if (o.align_corners) step = out > 1 ? float(in - 1) / float(out - 1) : 0;
    const bool simple = out == in || out == 2 * in;
    if (o.mode == Interpolation::nearest && simple) step = out == in ? 1.0f : 0.5f;
    return LineMap{in, out, step, o.mode == Interpolation::bilinear, o.align_corners};
  };
  const auto factor = [&](double Scale::*side) {
    return o.scale ? std::optional((*o.scale).*side) : std::nullopt;
  };
  return {map(2, factor(&Scale::h)), map(3, factor(&Scale::w))};
}

NodeId interpolate(Graph& graph, std::string name, NodeId x, InterpolateOptions options) {
  return graph.add(std::move(name), std::make_shared<Interpolate>(options), {x});
}

}  // namespace antichain
