// Add, Sub, Mul and Div compute with two tensors, or with a tensor and a constant.
#include <fmt/format.h>

#include "layers/add.h"
#include "layers/layer_scale.h"
#include "layers/multiply.h"
#include "models/onnx/rows/rows.h"

namespace antichain::onnx::row {
namespace {

// Gives a product with a constant: one factor per channel is a layer scale.
void scale_channels(Translation& t, const Value& x, const Constant& factor) {
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

}  // namespace

void add(Translation& t) {
  for (const size_t i : {0, 1})
    if (is_number(t.constant(i), 0)) return t.give(0, t.input(1 - i));
  if (t.node().inputs.size() < 2) return identity(t);
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

void multiply(Translation& t) {
  for (const size_t i : {0, 1})
    if (const Constant c = t.constant(i)) {
      if (is_number(c, 1)) return t.give(0, t.input(1 - i));
      return scale_channels(t, t.input(1 - i), c);
    }
  Value a = t.input(0), b = t.input(1);
  if (Shape(t.shape(a)).elements() < Shape(t.shape(b)).elements()) std::swap(a, b);
  if (a.order != b.order && t.rank(a) == t.rank(b)) a = t.plain(a), b = t.plain(b);
  t.give(0, t.emit(std::make_shared<Multiply>(), {a, b}, a.order));
}

void divide(Translation& t) {
  if (!is_number(t.constant(1), 1)) throw Unsupported{"a quotient"};
  identity(t);
}

void subtract(Translation& t) {
  if (!is_number(t.constant(1), 0)) throw Unsupported{"a difference"};
  identity(t);
}

}  // namespace antichain::onnx::row
