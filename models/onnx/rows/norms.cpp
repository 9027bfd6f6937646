// BatchNormalization, LayerNormalization, GroupNormalization and InstanceNormalization subtract a mean and
// divide by a standard deviation. They differ in which numbers these are taken over.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layers/batch_norm.h"
#include "layers/group_norm.h"
#include "layers/layer_norm.h"
#include "models/onnx/rows/rows.h"

namespace antichain::onnx::row {
namespace {

// The scale of every group (before opset 21) becomes one of every channel.
Constant per_channel(Translation& t, const Constant& of, int64_t channels) {
  const int64_t groups = of->elements();
  if (t.node().integer("per_channel", 0) != 0 || t.opset >= 21 || groups == 0 || channels % groups != 0)
    return of;
  t.constants.take(channels);
  std::vector<float> values;
  for (int64_t c = 0; c < channels; ++c)
    values.push_back(std::get<std::vector<float>>(of->values)[size_t(c / (channels / groups))]);
  return std::make_shared<const NamedTensor>(
      NamedTensor{.name = of->name, .shape = {channels}, .values = std::move(values)});
}

}  // namespace

void batch_norm(Translation& t) {
  const Value x = t.input();
  const NamedTensor count{.shape = {}, .values = std::vector<int64_t>{0}};
  const std::vector<Part> parts = {{"weight", t.weight(1, "a scale")},
                                   {"bias", t.weight(2, "a bias")},
                                   {"running_mean", t.weight(3, "a mean")},
                                   {"running_var", t.weight(4, "a variance")},
                                   {"num_batches_tracked", std::make_shared<const NamedTensor>(count)}};
  // What the file calls momentum is the share of the old statistics.
  const BatchNormOptions o{
      .eps = t.node().real("epsilon", 1e-5f),
      .momentum = float(std::round((1 - double(t.node().real("momentum", 0.9f))) * 1e6) / 1e6)};
  const auto norm = [&](const Value& image) {
    return t.emit(std::make_shared<BatchNorm>(o), {image}, {}, parts);
  };
  t.give(0, t.rank(x) == 4 ? norm(t.plain(x)) : t.over_channels(x, t.axis(x, 1), norm));
}

void layer_norm(Translation& t) {
  const Value x = t.input();
  std::vector<int> axes;
  if (t.node().find("axes")) {
    for (const int64_t axis : t.node().integers("axes")) axes.push_back(t.axis(x, axis));
    std::ranges::sort(axes);
  } else {
    for (int axis = t.axis(x, t.node().integer("axis", -1)); axis < t.rank(x); ++axis) axes.push_back(axis);
  }
  if (axes.empty() || axes[0] < 1) throw Unsupported{"LayerNormalization over the samples"};
  for (size_t i = 1; i < axes.size(); ++i)
    if (axes[i] != axes[0] + int(i)) throw Unsupported{"LayerNormalization over axes that are no neighbours"};
  LayerNormOptions o{
      .eps = t.node().real("epsilon", 1e-5f), .affine = t.has(1), .bias = t.has(2) || !t.has(1)};
  std::vector<Part> parts;
  if (t.has(1)) parts = weight_and_bias(t.weight(1, "a scale"), t.has(2) ? t.weight(2, "a bias") : nullptr);
  if (axes.size() == 1 && t.rank(x) == 4 && x.order[size_t(axes[0])] == 1) {
    o.channels = true;
    return t.give(0, t.emit(std::make_shared<LayerNorm>(o), {x}, x.order, parts));
  }
  if (axes.back() != t.rank(x) - 1) throw Unsupported{"LayerNormalization over other than the last axes"};
  std::vector<int64_t> over = t.shape(x);
  over.erase(over.begin(), over.begin() + axes[0]);
  o.over = Shape(over);
  t.give(0, t.emit(std::make_shared<LayerNorm>(o), {t.plain(x)}, {}, parts));
}

void group_norm(Translation& t) {
  const Value x = t.plain(t.input());
  const int64_t channels = t.shape(x)[1];
  const bool affine = t.has(1);
  if (affine && !t.has(2)) throw Unsupported{"GroupNormalization with a scale and no bias"};
  std::vector<Part> parts;
  if (affine)
    parts = weight_and_bias(per_channel(t, t.weight(1, "a scale"), channels),
                            per_channel(t, t.weight(2, "a bias"), channels));
  const GroupNormOptions o{
      .groups = t.node().integer("num_groups", 0), .eps = t.node().real("epsilon", 1e-5f), .affine = affine};
  t.give(0, t.emit(std::make_shared<GroupNorm>(o), {x}, {}, parts));
}

void instance_norm(Translation& t) {
  const Value x = t.plain(t.input());
  const GroupNormOptions o{.groups = t.shape(x)[1], .eps = t.node().real("epsilon", 1e-5f)};
  t.give(0, t.emit(std::make_shared<GroupNorm>(o), {x}, {},
                   weight_and_bias(t.weight(1, "a scale"), t.weight(2, "a bias"))));
}

}  // namespace antichain::onnx::row
