// Gemm and MatMul multiply by a matrix of weights, so they are linear layers.
#include <fmt/format.h>

#include "layers/conv2d.h"
#include "layers/linear.h"
#include "models/onnx/rows/rows.h"

namespace antichain::onnx::row {
namespace {

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

// Gives y = x weightᵀ + bias, over the last axis of x.
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

Constant matrix_of(Translation& t) {
  const Constant weight = t.weight(1, "a second factor");
  if (weight->shape.size() != 2)
    throw Unsupported{fmt::format("'{}' with a weight of {}", t.node().op, weight->shape_text())};
  return weight;
}

}  // namespace

void gemm(Translation& t) {
  only("Gemm with alpha", t.node().real("alpha", 1), 1.0f);
  only("Gemm with beta", t.node().real("beta", 1), 1.0f);
  only("Gemm with transA", t.node().integer("transA", 0), 0);
  const Constant weight = matrix_of(t);
  linear_layer(t, t.node().integer("transB", 0) != 0 ? weight : transposed(t, weight),
               t.has(2) ? t.weight(2, "a bias") : nullptr);
}

void matmul(Translation& t) {
  linear_layer(t, transposed(t, matrix_of(t)), t.has(2) ? t.weight(2, "a bias") : nullptr);
}

}  // namespace antichain::onnx::row
