// The table says how each operator of ONNX becomes nodes, with one row an operator. docs/bring-your-model.md
// lists them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "layers/layers.h"
#include "layers/operators.h"
#include "models/onnx/translation.h"

namespace antichain::onnx {
namespace {

template <class T>
void only(const char* what, const T& value, const T& allowed) {
  if (value != allowed) throw Unsupported{fmt::format("{} {}", what, value)};
}

int small(int64_t value, const char* what) {
  if (value < 0 || value > most_option) throw Unsupported{fmt::format("{} of {}", what, value)};
  return int(value);
}

Extent pair(const std::vector<int64_t>& values, const char* what) {
  if (values.size() != 2)
    throw Unsupported{
        fmt::format("{} of {} numbers (images have a height and a width)", what, values.size())};
  return {small(values[0], what), small(values[1], what)};
}

Extent pair_of(const Translation& t, const char* attribute, std::vector<int64_t> otherwise = {1, 1}) {
  return pair(t.node().integers(attribute, std::move(otherwise)), attribute);
}

Extent sum(Extent a, Extent b) { return {a.h + b.h, a.w + b.w}; }

Padding from_four(const std::vector<int64_t>& pads) {
  if (pads.size() != 4) throw Unsupported{fmt::format("padding of {} numbers (images have 4)", pads.size())};
  return {pair({pads[0], pads[1]}, "padding"), pair({pads[2], pads[3]}, "padding")};
}

// Returns the zeros around an image of h x w that a node says itself.
Padding pads_of(const Translation& t, const Value& x, Extent kernel, Extent stride, Extent dilation) {
  const std::string how = t.node().text("auto_pad", "NOTSET");
  if (how == "NOTSET") return from_four(t.node().integers("pads", {0, 0, 0, 0}));
  if (how == "VALID") return 0;
  if (how != "SAME_UPPER" && how != "SAME_LOWER") throw Unsupported{fmt::format("auto_pad {}", how)};
  const std::vector<int64_t> shape = t.shape(x);
  const auto total = [](int64_t in, int k, int s, int d) {
    return int(std::max<int64_t>(0, ((in + s - 1) / s - 1) * s + reach(k, d) - in));
  };
  const Extent all(total(shape[2], kernel.h, stride.h, dilation.h),
                   total(shape[3], kernel.w, stride.w, dilation.w));
  const Extent less(all.h / 2, all.w / 2), more(all.h - less.h, all.w - less.w);
  return how == "SAME_UPPER" ? Padding(less, more) : Padding(more, less);
}

Extent positive(Extent e, const char* what) {
  if (e.h < 1 || e.w < 1) throw Unsupported{fmt::format("{} of {} x {}", what, e.h, e.w)};
  return e;
}

// Convolutions and linear layers

std::vector<Part> weight_and_bias(Constant weight, Constant bias) {
  std::vector<Part> parts = {{"weight", std::move(weight)}};
  if (bias) parts.push_back({"bias", std::move(bias)});
  return parts;
}

void conv(Translation& t) {
  Value x = t.padded_input();
  const Padding zeros = x.zeros;
  x.zeros = 0;
  x = t.image(x, "Conv");
  const Constant weight = t.weight(1, "a weight");
  if (weight->shape.size() != 4)
    throw Unsupported{fmt::format("Conv with a weight of {}", weight->shape_text())};
  const Constant bias = t.has(2) ? t.weight(2, "a bias") : nullptr;
  const Extent kernel = positive(pair({weight->shape[2], weight->shape[3]}, "a kernel"), "a kernel");
  const Extent stride = positive(pair_of(t, "strides"), "a stride"),
               dilation = positive(pair_of(t, "dilations"), "a dilation");
  const Padding own = pads_of(t, x, kernel, stride, dilation);
  t.give(0, t.emit(std::make_shared<Conv2d>(
                       Conv2dOptions{.out = weight->shape[0],
                                     .kernel = kernel,
                                     .stride = stride,
                                     .pad = {sum(zeros.before, own.before), sum(zeros.after, own.after)},
                                     .dilation = dilation,
                                     .groups = small(t.node().integer("group", 1), "groups"),
                                     .bias = bias != nullptr}),
                   {x}, {}, weight_and_bias(weight, bias)));
}

void conv_transpose(Translation& t) {
  const Value x = t.image(t.input(), "ConvTranspose");
  const Constant weight = t.weight(1, "a weight");
  const Constant bias = t.has(2) ? t.weight(2, "a bias") : nullptr;
  if (weight->shape.size() != 4)
    throw Unsupported{fmt::format("ConvTranspose with a weight of {}", weight->shape_text())};
  only<std::string>("auto_pad", t.node().text("auto_pad", "NOTSET"), "NOTSET");
  if (t.node().find("output_shape")) throw Unsupported{"output_shape of ConvTranspose"};
  const Padding pad = from_four(t.node().integers("pads", {0, 0, 0, 0}));
  if (pad.before != pad.after) throw Unsupported{"ConvTranspose with another padding at the ends"};
  const int groups = small(t.node().integer("group", 1), "groups");
  t.give(0, t.emit(std::make_shared<ConvTranspose2d>(ConvTranspose2dOptions{
                       .out = weight->shape[1] * groups,
                       .kernel = positive(pair({weight->shape[2], weight->shape[3]}, "a kernel"), "a kernel"),
                       .stride = positive(pair_of(t, "strides"), "a stride"),
                       .pad = pad.before,
                       .output_pad = pair_of(t, "output_padding", {0, 0}),
                       .dilation = positive(pair_of(t, "dilations"), "a dilation"),
                       .groups = groups,
                       .bias = bias != nullptr}),
                   {x}, {}, weight_and_bias(weight, bias)));
}

Constant transposed(Translation& t, const Constant& weight) {
  NamedTensor y{
      .name = weight->name, .shape = {weight->shape[1], weight->shape[0]}, .values = weight->values};
  t.constants.take(y.elements());
  const auto& from = std::get<std::vector<float>>(weight->values);
  auto& to = std::get<std::vector<float>>(y.values);
  const size_t rows = size_t(weight->shape[0]), columns = size_t(weight->shape[1]);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  return std::make_shared<const NamedTensor>(std::move(y));
}

// y = x weightᵀ + bias, over the last axis of x.
void linear_layer(Translation& t, const Constant& weight, const Constant& bias) {
  const Value x = t.input();
  const int64_t out = weight->shape[0];
  const std::vector<Part> parts = weight_and_bias(weight, bias);
  if (t.rank(x) == 2)
    return t.give(0, t.emit(std::make_shared<Linear>(LinearOptions{.out = out, .bias = bias != nullptr}),
                            {t.plain(x)}, {}, parts));
  // Over the last of more axes it is a 1 x 1 convolution over the channels.
  t.give(0, t.over_channels(x, t.rank(x) - 1, [&](const Value& image) {
    const Conv2dOptions o{.out = out, .kernel = 1, .bias = bias != nullptr, .matrix = true};
    return t.emit(std::make_shared<Conv2d>(o), {image}, {}, parts);
  }));
}

Constant matrix(Translation& t) {
  const Constant weight = t.weight(1, "a second factor");
  if (weight->shape.size() != 2)
    throw Unsupported{fmt::format("'{}' with a weight of {}", t.node().op, weight->shape_text())};
  return weight;
}

void gemm(Translation& t) {
  only("Gemm with alpha", t.node().real("alpha", 1), 1.0f);
  only("Gemm with beta", t.node().real("beta", 1), 1.0f);
  only<int64_t>("Gemm with transA", t.node().integer("transA", 0), 0);
  const Constant weight = matrix(t);
  linear_layer(t, t.node().integer("transB", 0) != 0 ? weight : transposed(t, weight),
               t.has(2) ? t.weight(2, "a bias") : nullptr);
}

void matmul(Translation& t) {
  linear_layer(t, transposed(t, matrix(t)), t.has(2) ? t.weight(2, "a bias") : nullptr);
}

// Normalisation

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

// Functions of every number

auto activation(ActivationFunction f) {
  return [f](Translation& t) { t.give(0, t.same(std::make_shared<Activate>(f), t.input())); };
}

void gelu_row(Translation& t) {
  const std::string form = t.node().text("approximate", "none");
  if (form != "none" && form != "tanh")
    throw Unsupported{fmt::format("Gelu with the approximation {}", form)};
  activation(form == "tanh" ? ActivationFunction::gelu_tanh : ActivationFunction::gelu)(t);
}

void hardsigmoid_row(Translation& t) {
  const float alpha = t.node().real("alpha", 0.2f), beta = t.node().real("beta", 0.5f);
  if (std::abs(alpha - 1.0f / 6) > 1e-4f || beta != 0.5f)
    throw Unsupported{fmt::format("HardSigmoid with alpha {} and beta {} (1/6 and 0.5 are)", alpha, beta)};
  activation(ActivationFunction::hardsigmoid)(t);
}

void relu_row(Translation& t) { t.give(0, t.same(std::make_shared<Relu>(), t.input())); }

void clip(Translation& t) {
  const auto bound = [&](const char* attribute, size_t i) -> std::optional<double> {
    if (t.node().find(attribute)) return t.node().real(attribute, 0);
    return t.has(i) ? number_of(*t.weight(i, attribute)) : std::nullopt;
  };
  const std::optional<double> low = bound("min", 1), high = bound("max", 2);
  if (low == 0 && (!high || *high > 3e38)) return relu_row(t);
  if (low != 0 || high != 6) throw Unsupported{"Clip to other bounds than 0 and 6 (ReLU6), or 0 alone,"};
  activation(ActivationFunction::relu6)(t);
}

void same_numbers(Translation& t) { t.give(0, t.input()); }

void cast_row(Translation& t) {
  const int64_t to = t.node().integer("to", type_float);
  if (to != type_float && to != type_double)
    throw Unsupported{fmt::format("Cast of a computed tensor to type {}", to)};
  same_numbers(t);
}

void dropout_row(Translation& t) {
  double p = t.node().real("ratio", 0.5f);
  if (t.has(1)) p = number_of(*t.weight(1, "a ratio")).value_or(-1);
  p = std::round(p * 1e6) / 1e6;
  if (!(p >= 0 && p < 1)) throw Unsupported{fmt::format("Dropout of {}", p)};
  if (p == 0) return same_numbers(t);
  // The name that keys the random numbers is that of the node in the GraphFile, which is made anew from text.
  t.give(0, t.same(std::make_shared<Dropout>(p, t.node().name), t.input()));
}

void softmax_row(Translation& t) {
  const Value x = t.input();
  const int last = t.rank(x) - 1, axis = t.axis(x, t.node().integer("axis", t.opset < 13 ? 1 : -1));
  if (axis < 1 || (t.opset < 13 && axis != last))
    throw Unsupported{fmt::format("Softmax over axis {}", axis)};
  const auto of = [&](const Value& y) { return t.emit(std::make_shared<Softmax>(), {y}); };
  t.give(0, last == 1 ? of(t.plain(x)) : t.over_channels(x, axis, of));
}

// Pools

PoolOptions pool_options(Translation& t, const Value& x) {
  const Extent kernel = positive(pair(t.node().integers("kernel_shape"), "a kernel"), "a kernel");
  const Extent stride = positive(pair_of(t, "strides"), "a stride");
  if (positive(pair_of(t, "dilations"), "a dilation") != Extent(1))
    throw Unsupported{fmt::format("'{}' with a dilation", t.node().op)};
  const Padding pad = pads_of(t, x, kernel, stride, 1);
  if (pad.before != pad.after)
    throw Unsupported{fmt::format("'{}' with another padding at the ends", t.node().op)};
  return {.kernel = kernel,
          .stride = stride,
          .pad = pad.before,
          .ceil_mode = t.node().integer("ceil_mode", 0) != 0};
}

void max_pool_row(Translation& t) {
  const Value x = t.image(t.input(), "MaxPool");
  t.give(0, t.emit(std::make_shared<Pool>(Pool::Kind::max, pool_options(t, x)), {x}));
}

void average_pool_row(Translation& t) {
  Value x = t.padded_input();
  const Padding zeros = x.zeros;
  x.zeros = 0;
  x = t.image(x, "AveragePool");
  PoolOptions o = pool_options(t, x);
  o.count_include_pad = t.node().integer("count_include_pad", 0) != 0 || o.pad == Extent(0);
  if (zeros != Padding(0)) {
    if (zeros.before != zeros.after || o.pad != Extent(0))
      throw Unsupported{"AveragePool behind a padding that differs at the ends, or of its own"};
    o.pad = zeros.before;
  }
  t.give(0, t.emit(std::make_shared<Pool>(Pool::Kind::average, o), {x}));
}

void global_average(Translation& t) {
  t.give(0, t.emit(std::make_shared<GlobalAveragePool>(), {t.image(t.input(), "GlobalAveragePool")}));
}

void reduce_mean(Translation& t) {
  const Value x = t.input();
  std::vector<int> stored;
  for (const int64_t axis : t.integers("axes", 1)) {
    const int at = t.axis(x, axis);
    if (at == 0) throw Unsupported{"a mean over the samples"};
    stored.push_back(x.order[size_t(at)]);
  }
  std::ranges::sort(stored);
  if (stored.empty() || std::ranges::adjacent_find(stored) != stored.end())
    throw Unsupported{"a mean over the samples"};
  if (t.node().integer("keepdims", 1) != 0) {
    if (t.rank(x) == 4 && stored == std::vector<int>{2, 3})
      return t.give(0, t.emit(std::make_shared<GlobalAveragePool>(), {x}, x.order));
    return t.give(0, t.emit(std::make_shared<Mean>(stored, true), {x}, x.order));
  }
  std::vector<int> order;
  for (const int axis : x.order)
    if (std::ranges::find(stored, axis) == stored.end())
      order.push_back(axis - int(std::ranges::count_if(stored, [&](int gone) { return gone < axis; })));
  t.give(0, t.emit(std::make_shared<Mean>(stored), {x}, order));
}

// Two tensors

bool is_number(const Constant& c, double value) { return c && number_of(*c) == value; }

void add_row(Translation& t) {
  for (const size_t i : {0, 1})
    if (is_number(t.constant(i), 0)) return t.give(0, t.input(1 - i));
  if (t.node().inputs.size() < 2) return same_numbers(t);
  Value sum = t.input(0);
  for (size_t i = 1; i < t.node().inputs.size(); ++i) {
    Value other = t.input(i);
    if (t.shape(sum) != t.shape(other))
      throw Unsupported{fmt::format("a sum of tensors of the shapes {} and {} (both have one shape)",
                                    Shape(t.shape(sum)).str(), Shape(t.shape(other)).str())};
    if (sum.order != other.order) sum = t.plain(sum), other = t.plain(other);
    sum = t.emit(std::make_shared<Add>(), {sum, other}, sum.order);
  }
  t.give(0, sum);
}

// A parameter per channel is a layer scale.
void scale_row(Translation& t, const Value& x, const Constant& factor) {
  const std::vector<int64_t> shape = t.shape(x);
  const size_t rank = factor->shape.size();
  size_t at = 0;  // the axis along which the factors differ
  for (size_t i = 0; i < rank; ++i)
    if (factor->shape[i] != 1 && rank <= shape.size()) at = shape.size() - rank + i;
  if (t.rank(x) != 4 || at == 0 || x.order[at] != 1 || factor->elements() != shape[at] || !factor->is_float())
    throw Unsupported{fmt::format("a product of {} and a constant of {} (one factor per channel is)",
                                  Shape(shape).str(), factor->shape_text())};
  t.give(0, t.emit(std::make_shared<LayerScale>(LayerScaleOptions{}), {x}, x.order, {{"", factor}}));
}

void multiply_row(Translation& t) {
  for (const size_t i : {0, 1})
    if (const Constant c = t.constant(i)) {
      if (is_number(c, 1)) return t.give(0, t.input(1 - i));
      return scale_row(t, t.input(1 - i), c);
    }
  Value a = t.input(0), b = t.input(1);
  if (Shape(t.shape(a)).elements() < Shape(t.shape(b)).elements()) std::swap(a, b);
  if (a.order != b.order && t.rank(a) == t.rank(b)) a = t.plain(a), b = t.plain(b);
  t.give(0, t.emit(std::make_shared<Multiply>(), {a, b}, a.order));
}

void divide_row(Translation& t) {
  if (!is_number(t.constant(1), 1)) throw Unsupported{"a quotient"};
  same_numbers(t);
}

void subtract_row(Translation& t) {
  if (!is_number(t.constant(1), 0)) throw Unsupported{"a difference"};
  same_numbers(t);
}

// Shapes

void shape_row(Translation& t) {
  const std::vector<int64_t> shape = t.shape(t.input());
  const auto place = [&](int64_t at) {
    const int64_t rank = int64_t(shape.size());
    return std::clamp<int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
  };
  const int64_t begin = place(t.node().integer("start", 0));
  const int64_t end = std::max(begin, place(t.node().integer("end", int64_t(shape.size()))));
  t.give(0, NamedTensor{.shape = {end - begin},
                        .values = std::vector<int64_t>(shape.begin() + begin, shape.begin() + end)});
}

void reshape_row(Translation& t) {
  const Value x = t.input();
  const std::vector<int64_t> from = t.shape(x);
  std::vector<int64_t> to = t.integers("shape", 1);
  if (t.node().integer("allowzero", 0) == 0)
    for (size_t i = 0; i < to.size() && i < from.size(); ++i)
      if (to[i] == 0) to[i] = from[i];
  int64_t product = 1, of_sample = 1;
  for (size_t i = 1; i < from.size(); ++i) of_sample *= from[i];
  const auto refuse = [&] {
    throw Unsupported{
        fmt::format("a reshape of {} samples of {} numbers to [{}], which mixes samples or does not fit,",
                    t.file_samples < 0 ? std::string("any number of") : fmt::format("{}", t.file_samples),
                    of_sample, fmt::join(to, ", "))};
  };
  if (to.size() < 2 || to.size() > 8) refuse();
  size_t open = 0;
  for (size_t i = 1; i < to.size(); ++i)
    if (to[i] == -1 && open == 0)
      open = i;
    else if (to[i] < 1 || __builtin_mul_overflow(product, to[i], &product))
      refuse();
  if (open != 0) to[open] = of_sample / product, product *= to[open];
  const bool samples_first = to[0] == -1 || to[0] == Translation::samples || to[0] == t.file_samples;
  if (!samples_first || product != of_sample || (open != 0 && to[0] == -1)) refuse();
  t.give(0, t.reshape(x, {to.begin() + 1, to.end()}));
}

void flatten_row(Translation& t) {
  const Value x = t.input();
  if (t.axis(x, t.node().integer("axis", 1)) != 1) throw Unsupported{"Flatten at another axis than 1"};
  int64_t numbers = 1;
  const std::vector<int64_t> shape = t.shape(x);
  for (size_t i = 1; i < shape.size(); ++i) numbers *= shape[i];
  t.give(0, t.reshape(x, {numbers}));
}

void squeeze_row(Translation& t) {
  const Value x = t.input();
  std::vector<int64_t> shape = t.shape(x);
  std::vector<int> axes;
  for (const int64_t axis : t.integers("axes", 1)) axes.push_back(t.axis(x, axis));
  if (axes.empty())
    for (size_t i = 1; i < shape.size(); ++i)
      if (shape[i] == 1) axes.push_back(int(i));
  std::vector<int64_t> left;
  for (size_t i = 1; i < shape.size(); ++i)
    if (std::ranges::find(axes, int(i)) == axes.end())
      left.push_back(shape[i]);
    else if (shape[i] != 1)
      throw Unsupported{fmt::format("Squeeze of an axis of {}", shape[i])};
  if (std::ranges::find(axes, 0) != axes.end()) throw Unsupported{"Squeeze of the samples"};
  t.give(0, t.reshape(x, left));
}

void unsqueeze_row(Translation& t) {
  const Value x = t.input();
  const std::vector<int64_t> shape = t.shape(x), axes = t.integers("axes", 1);
  const int64_t rank = int64_t(shape.size() + axes.size());
  std::vector<int64_t> places, wider;
  for (const int64_t axis : axes) places.push_back(axis_in(axis, rank));
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    if (std::ranges::find(places, i) != places.end())
      wider.push_back(1);
    else if (next < shape.size())
      wider.push_back(shape[next++]);
  if (next != shape.size() || wider.size() != size_t(rank) || wider[0] != shape[0])
    throw Unsupported{"Unsqueeze in front of the samples, or of an axis twice"};
  t.give(0, t.reshape(x, {wider.begin() + 1, wider.end()}));
}

void transpose_row(Translation& t) {
  Value x = t.input();
  std::vector<int64_t> reversed(size_t(t.rank(x)));
  for (size_t i = 0; i < reversed.size(); ++i) reversed[i] = int64_t(reversed.size() - 1 - i);
  const std::vector<int64_t> perm = t.node().integers("perm", reversed);
  std::vector<int64_t> sorted = perm;
  std::ranges::sort(sorted);
  std::ranges::reverse(reversed);
  if (sorted != reversed) throw Unsupported{"Transpose with other than a permutation"};
  if (perm[0] != 0) throw Unsupported{"a permutation that moves the samples from the first axis"};
  const std::vector<int> order = x.order;
  for (size_t i = 0; i < perm.size(); ++i) x.order[i] = order[size_t(perm[i])];
  t.give(0, x);
}

void concat_row(Translation& t) {
  std::vector<Value> parts;
  for (size_t i = 0; i < t.node().inputs.size(); ++i) parts.push_back(t.input(i));
  if (parts.size() == 1) return t.give(0, parts[0]);
  if (parts.empty()) throw Unsupported{"Concat of nothing"};
  const int axis = t.axis(parts[0], t.node().integer("axis", 1));
  if (axis == 0) throw Unsupported{"Concat along the samples"};
  if (std::ranges::any_of(parts, [&](const Value& x) { return t.rank(x) != t.rank(parts[0]); }))
    throw Unsupported{"Concat of tensors of different numbers of axes"};
  t.give(0, t.over_channels(parts, axis, [&](const std::vector<Value>& x) {
    return t.emit(std::make_shared<Concat>(), x);
  }));
}

// x[begin:end:step] along an axis.
Value part(Translation& t, const Value& x, int axis, int64_t begin, int64_t end, int64_t step = 1) {
  const int64_t extent = t.shape(x)[size_t(axis)];
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max(at, -extent) + extent : at, 0, extent);
  };
  begin = place(begin), end = place(end);
  if (begin == 0 && end == extent && step == 1) return x;
  if (axis == 0) throw Unsupported{"a part of the samples"};
  if (step < 1 || begin >= end) throw Unsupported{fmt::format("an empty part [{}:{}:{}]", begin, end, step)};
  return t.emit(std::make_shared<Slice>(
                    SliceOptions{.axis = x.order[size_t(axis)], .begin = begin, .end = end, .step = step}),
                {x}, x.order);
}

void slice_row(Translation& t) {
  Value x = t.input();
  const std::vector<int64_t> begins = t.integers("starts", 1), ends = t.integers("ends", 2);
  std::vector<int64_t> all(begins.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
  const std::vector<int64_t> axes = t.integers("axes", 3, all);
  const std::vector<int64_t> steps = t.integers("steps", 4, std::vector<int64_t>(begins.size(), 1));
  if (ends.size() != begins.size() || axes.size() != begins.size() || steps.size() != begins.size())
    throw Unsupported{"Slice with different numbers of starts, ends, axes and steps"};
  for (size_t i = 0; i < begins.size(); ++i) x = part(t, x, t.axis(x, axes[i]), begins[i], ends[i], steps[i]);
  t.give(0, x);
}

void split_row(Translation& t) {
  const Value x = t.input();
  const int axis = t.axis(x, t.node().integer("axis", 0));
  const int64_t extent = t.shape(x)[size_t(axis)];
  const int64_t count = int64_t(t.node().outputs.size());
  if (count == 0) throw Unsupported{"Split into nothing"};
  const int64_t each = (extent + count - 1) / count;
  std::vector<int64_t> sizes = t.integers("split", 1);
  if (sizes.empty())
    for (int64_t i = 0; i < count; ++i) sizes.push_back(std::min(each, extent - i * each));
  int64_t sum = 0;
  for (const int64_t size : sizes)
    if (size < 1 || __builtin_add_overflow(sum, size, &sum)) throw Unsupported{"Split into empty parts"};
  if (int64_t(sizes.size()) != count || sum != extent)
    throw Unsupported{fmt::format("Split of {} into parts of {} together", extent, sum)};
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
    if (!t.node().outputs[i].empty()) t.give(i, part(t, x, axis, begin, begin + sizes[i]));
}

void gather_row(Translation& t) {
  const Value x = t.input();
  const int axis = t.axis(x, t.node().integer("axis", 0));
  const Constant place = t.constant(1);
  if (!place || place->is_float() || place->elements() != 1 || place->shape.size() > 1)
    throw Unsupported{"Gather of other than one place of an axis"};
  std::vector<int64_t> shape = t.shape(x);
  const int64_t at = axis_in(std::get<std::vector<int64_t>>(place->values)[0], shape[size_t(axis)]);
  if (axis == 0 || at < 0) throw Unsupported{"Gather of samples, or beyond the end of an axis"};
  const Value taken = part(t, x, axis, at, at + 1);
  shape.erase(shape.begin() + (place->shape.empty() ? axis : 0));
  if (!place->shape.empty()) return t.give(0, taken);
  t.give(0, t.reshape(taken, {shape.begin() + 1, shape.end()}));
}

void pad_row(Translation& t) {
  only<std::string>("Pad of the mode", t.node().text("mode", "constant"), "constant");
  if (t.has(2) && !is_number(t.constant(2), 0)) throw Unsupported{"Pad by another value than 0"};
  if (t.has(3)) throw Unsupported{"Pad of chosen axes"};
  Value x = t.input();
  const std::vector<int64_t> pads = t.integers("pads", 1);
  if (std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return t.give(0, x);
  x = t.image(x, "Pad");
  if (pads.size() != 8 || pads[0] != 0 || pads[1] != 0 || pads[4] != 0 || pads[5] != 0)
    throw Unsupported{"Pad of other than height and width"};
  x.zeros = from_four({pads[2], pads[3], pads[6], pads[7]});
  t.give(0, x);
}

void resize(Translation& t) {
  const Value x = t.image(t.input(), "Resize");
  const std::string mode = t.node().text("mode", "nearest");
  const std::string at = t.node().text("coordinate_transformation_mode", "half_pixel");
  InterpolateOptions o;
  if (mode == "linear" && (at == "half_pixel" || at == "pytorch_half_pixel" || at == "align_corners"))
    o = {.mode = Interpolation::bilinear, .align_corners = at == "align_corners"};
  else if (mode != "nearest" || at != "asymmetric" ||
           t.node().text("nearest_mode", "round_prefer_floor") != "floor")
    throw Unsupported{fmt::format("Resize of the mode {} at {}", mode, at)};
  const Constant scales = t.constant(2);
  if (t.has(3)) {
    const std::vector<int64_t> sizes = t.integers("sizes", 3);
    if (sizes.size() != 4) throw Unsupported{"Resize of other than height and width"};
    o.size = pair({sizes[2], sizes[3]}, "a size");
  } else if (scales && scales->is_float() && scales->elements() == 4) {
    const auto& s = std::get<std::vector<float>>(scales->values);
    if (s[0] != 1 || s[1] != 1 || !(s[2] > 0 && s[3] > 0 && s[2] < most_option && s[3] < most_option))
      throw Unsupported{"Resize of other than height and width"};
    o.scale = Scale(s[2], s[3]);
  } else {
    throw Unsupported{"Resize without sizes or scales that are constant"};
  }
  t.give(0, t.emit(std::make_shared<Interpolate>(o), {x}));
}

const std::map<std::string, std::function<void(Translation&)>>& rows_of_onnx() {
  using enum ActivationFunction;
  static const std::map<std::string, std::function<void(Translation&)>> table = {
      {"Add", add_row},
      {"AveragePool", average_pool_row},
      {"BatchNormalization", batch_norm},
      {"Cast", cast_row},
      {"Clip", clip},
      {"Concat", concat_row},
      {"Conv", conv},
      {"ConvTranspose", conv_transpose},
      {"Div", divide_row},
      {"Dropout", dropout_row},
      {"Flatten", flatten_row},
      {"Gather", gather_row},
      {"Gelu", gelu_row},
      {"Gemm", gemm},
      {"GlobalAveragePool", global_average},
      {"GroupNormalization", group_norm},
      {"HardSigmoid", hardsigmoid_row},
      {"HardSwish", activation(hardswish)},
      {"Identity", same_numbers},
      {"InstanceNormalization", instance_norm},
      {"LayerNormalization", layer_norm},
      {"MatMul", matmul},
      {"MaxPool", max_pool_row},
      {"Mul", multiply_row},
      {"Pad", pad_row},
      {"ReduceMean", reduce_mean},
      {"Relu", relu_row},
      {"Reshape", reshape_row},
      {"Resize", resize},
      {"Shape", shape_row},
      {"Sigmoid", activation(sigmoid)},
      {"Slice", slice_row},
      {"Softmax", softmax_row},
      {"Split", split_row},
      {"Squeeze", squeeze_row},
      {"Sub", subtract_row},
      {"Sum", add_row},
      {"Swish", activation(silu)},
      {"Transpose", transpose_row},
      {"Unsqueeze", unsqueeze_row},
  };
  return table;
}

}  // namespace

void translate_node(Translation& t) {
  const auto row = rows_of_onnx().find(t.node().op);
  if (row == rows_of_onnx().end() || (!t.node().domain.empty() && t.node().domain != "ai.onnx"))
    throw Unsupported{
        fmt::format("'{}{}{}'", t.node().domain, t.node().domain.empty() ? "" : ".", t.node().op)};
  row->second(t);
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& [name, row] : rows_of_onnx()) names.push_back(name);
  return names;
}

}  // namespace antichain::onnx
