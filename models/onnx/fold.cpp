#include "models/onnx/fold.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_map>

namespace antichain::onnx {
namespace {

constexpr size_t most_axes = 16;

using Inputs = std::vector<Constant>;
using Folded = std::optional<NamedTensor>;

Folded reshaped(const NamedTensor& x, std::vector<int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) return {};
  if (elements != x.elements() || shape.size() > most_axes) return {};
  NamedTensor y = x;
  y.shape = std::move(shape);
  return y;
}

// Returns the axes that a node has as an attribute, or since opset 13 as its second input.
std::optional<std::vector<int64_t>> axes_of(const Node& node, const Inputs& x) {
  if (x.size() > 1) {
    const std::vector<int64_t>* axes = as_integers(*x[1]);
    return axes ? std::optional(*axes) : std::nullopt;
  }
  return node.find("axes") ? std::optional(node.integers("axes")) : std::nullopt;
}

Folded unsqueeze(const Node& node, const Inputs& x) {
  const auto axes = axes_of(node, x);
  if (!axes || axes->size() > most_axes) return {};
  const int64_t rank = int64_t(x[0]->shape.size() + axes->size());
  std::set<int64_t> ones;
  for (const int64_t axis : *axes) ones.insert(axis_in(axis, rank));
  if (ones.contains(-1) || ones.size() != axes->size()) return {};
  std::vector<int64_t> shape;
  auto old = x[0]->shape.begin();
  for (int64_t i = 0; i < rank; ++i) shape.push_back(ones.contains(i) ? 1 : *old++);
  return reshaped(*x[0], shape);
}

Folded squeeze(const Node& node, const Inputs& x) {
  const auto axes = axes_of(node, x);
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < int64_t(x[0]->shape.size()); ++i) {
    const bool named = axes && std::ranges::any_of(*axes, [&](int64_t axis) {
                         return axis_in(axis, int64_t(x[0]->shape.size())) == i;
                       });
    if (!(axes ? named : x[0]->shape[size_t(i)] == 1)) shape.push_back(x[0]->shape[size_t(i)]);
  }
  return reshaped(*x[0], shape);
}

Folded reshape_constant(const Inputs& x) {
  const std::vector<int64_t>* wanted = x.size() > 1 ? as_integers(*x[1]) : nullptr;
  if (!wanted || wanted->size() > most_axes) return {};
  std::vector<int64_t> shape = *wanted;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i < x[0]->shape.size()) shape[i] = x[0]->shape[i];
    if (shape[i] == -1)
      open = int64_t(i);
    else if (shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known))
      return {};
  }
  if (open >= 0 && known > 0) shape[size_t(open)] = x[0]->elements() / known;
  return reshaped(*x[0], shape);
}

Folded transpose_constant(const Node& node, const Inputs& x) {
  const std::vector<int64_t>& shape = x[0]->shape;
  std::vector<int64_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  if (node.find("perm")) order = node.integers("perm");
  std::vector<int64_t> sorted = order, natural(shape.size());
  std::iota(natural.begin(), natural.end(), 0);
  std::ranges::sort(sorted);
  if (sorted != natural) return {};
  std::vector<int64_t> strides(shape.size(), 1), to(shape.size()), step(shape.size());
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  for (size_t i = 0; i < shape.size(); ++i)
    to[i] = shape[size_t(order[i])], step[i] = strides[size_t(order[i])];
  NamedTensor y{.name = x[0]->name, .shape = to, .values = x[0]->values};
  const auto move = [&](const auto& from, auto& values) {
    std::vector<int64_t> at(to.size());
    size_t place = 0;
    for (auto& value : values) {
      value = from[place];
      for (size_t i = to.size(); i-- > 0;) {
        place += size_t(step[i]);
        if (++at[i] < to[i]) break;
        place -= size_t(step[i] * to[i]), at[i] = 0;
      }
    }
  };
  std::visit(
      [&](auto& values) { move(std::get<std::remove_cvref_t<decltype(values)>>(x[0]->values), values); },
      y.values);
  return y;
}

Folded cast(const Node& node, const Inputs& x) {
  const int64_t to = node.integer("to", type_float);
  const bool wants_float = to == type_float || to == type_double;
  if (!wants_float && to != type_int64 && to != type_int32 && to != type_bool) return {};
  if (wants_float == x[0]->is_float()) return *x[0];
  NamedTensor y{.name = x[0]->name, .shape = x[0]->shape, .values = {}};
  if (wants_float) {
    const auto& from = *as_integers(*x[0]);
    y.values = std::vector<float>(from.begin(), from.end());
    return y;
  }
  std::vector<int64_t> values;
  for (const float v : std::get<std::vector<float>>(x[0]->values)) {
    if (!(std::abs(v) < 9e18f)) return {};
    values.push_back(to == type_bool ? v != 0 : int64_t(v));
  }
  y.values = std::move(values);
  return y;
}

Folded gather(const Node& node, const Inputs& x) {
  if (x.size() != 2 || node.integer("axis", 0) != 0 || x[0]->shape.size() != 1) return {};
  const std::vector<int64_t>*from = as_integers(*x[0]), *places = as_integers(*x[1]);
  if (!from || !places) return {};
  std::vector<int64_t> values;
  for (const int64_t place : *places) {
    const int64_t at = axis_in(place, int64_t(from->size()));
    if (at < 0) return {};
    values.push_back((*from)[size_t(at)]);
  }
  return NamedTensor{.shape = x[1]->shape, .values = values};
}

Folded concat_constants(const Inputs& x) {
  NamedTensor y{.shape = {0}, .values = x[0]->values};
  std::visit([](auto& values) { values.clear(); }, y.values);
  for (const Constant& part : x) {
    if (part->is_float() != y.is_float() || part->shape.size() != 1) return {};
    if (size_t(y.elements() + part->elements()) > most_integers) return {};
    std::visit(
        [&](auto& values) {
          const auto& from = std::get<std::remove_cvref_t<decltype(values)>>(part->values);
          values.insert(values.end(), from.begin(), from.end());
        },
        y.values);
  }
  y.shape = {y.elements()};
  return y;
}

// Takes rows of the first axis. PyTorch computes paddings so, with a step of −1.
Folded slice_constant(const Inputs& x) {
  if (x.size() < 3 || x[0]->shape.empty() || size_t(x[0]->elements()) > most_integers) return {};
  const std::vector<int64_t>* from = as_integers(*x[0]);
  std::vector<int64_t> numbers;  // start, end, axis, step
  for (size_t i = 1; i < x.size(); ++i) {
    const std::vector<int64_t>* part = as_integers(*x[i]);
    if (!part || part->size() != 1) return {};
    numbers.push_back((*part)[0]);
  }
  const int64_t step = numbers.size() > 3 ? numbers[3] : 1;
  if (!from || (numbers.size() > 2 && numbers[2] != 0) || (step != 1 && step != -1)) return {};
  const int64_t extent = x[0]->shape[0], least = step < 0 ? -1 : 0;
  const int64_t begin = place_in(numbers[0], extent, least), end = place_in(numbers[1], extent, least);
  NamedTensor y{.shape = x[0]->shape, .values = std::vector<int64_t>{}};
  auto& values = std::get<std::vector<int64_t>>(y.values);
  const int64_t row = extent > 0 ? int64_t(from->size()) / extent : 0;
  y.shape[0] = 0;
  for (int64_t at = begin; step > 0 ? at < end : at > end; at += step, ++y.shape[0])
    values.insert(values.end(), from->begin() + at * row, from->begin() + (at + 1) * row);
  return y;
}

Folded filled(const Node& node, const Inputs& x, const std::string& origin) {
  const std::vector<int64_t>* shape = as_integers(*x[0]);
  if (!shape || shape->size() > most_axes) return {};
  int64_t elements = 1;
  for (const int64_t extent : *shape)
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements) ||
        elements > int64_t(most_integers))
      return {};
  const Attribute* value = node.find("value");
  const NamedTensor fill = value && value->has_tensor
                               ? numbers_of(value->tensor, origin)
                               : NamedTensor{.shape = {}, .values = std::vector<float>{0}};
  if (fill.elements() != 1) return {};
  NamedTensor y{.shape = *shape, .values = fill.values};
  std::visit([&](auto& values) { values.assign(size_t(elements), values[0]); }, y.values);
  return y;
}

// Computes with two tensors of one size, or with a tensor and a number.
template <class Of>
Folded pairwise(const Inputs& x, Of of) {
  if (x.size() != 2 || x[0]->is_float() != x[1]->is_float()) return {};
  const bool first = x[0]->elements() >= x[1]->elements() && x[0]->shape.size() >= x[1]->shape.size();
  const NamedTensor &large = first ? *x[0] : *x[1], &small = first ? *x[1] : *x[0];
  if (small.elements() != 1 && small.shape != large.shape) return {};
  if (size_t(large.elements()) > most_integers) return {};
  NamedTensor y{.shape = large.shape, .values = large.values};
  bool good = true;
  std::visit(
      [&](auto& values) {
        using Values = std::remove_cvref_t<decltype(values)>;
        const auto &a = std::get<Values>(x[0]->values), &b = std::get<Values>(x[1]->values);
        for (size_t i = 0; i < values.size(); ++i)
          good &= of(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i], values[i]);
      },
      y.values);
  return good ? Folded(y) : std::nullopt;
}

struct Arithmetic {
  char what;
  bool operator()(float a, float b, float& y) const {
    y = what == '+' ? a + b : what == '-' ? a - b : what == '*' ? a * b : a / b;
    return true;
  }
  bool operator()(int64_t a, int64_t b, int64_t& y) const {
    if (what == '+') return !__builtin_add_overflow(a, b, &y);
    if (what == '-') return !__builtin_sub_overflow(a, b, &y);
    if (what == '*') return !__builtin_mul_overflow(a, b, &y);
    if (b <= 0) return false;
    y = a / b;
    return true;
  }
};

Fold arithmetic(char what) {
  return [what](const Node&, const Inputs& x, const std::string&) { return pairwise(x, Arithmetic{what}); };
}

Fold rounding(float (*how)(float)) {
  return [how](const Node&, const Inputs& x, const std::string&) {
    NamedTensor y = *x[0];
    if (auto* values = std::get_if<std::vector<float>>(&y.values))
      std::ranges::transform(*values, values->begin(), how);
    return Folded(y);
  };
}

Folded first_input(const Inputs& x) { return *x[0]; }

Folded shape_of(const Node& node, const Inputs& x) {
  if (!node.attributes.empty()) return {};
  return NamedTensor{.shape = {int64_t(x[0]->shape.size())}, .values = x[0]->shape};
}

Fold of(Folded (*fold)(const Node&, const Inputs&)) {
  return [fold](const Node& node, const Inputs& x, const std::string&) { return fold(node, x); };
}

Fold of(Folded (*fold)(const Inputs&)) {
  return [fold](const Node&, const Inputs& x, const std::string&) { return fold(x); };
}

}  // namespace

const Fold* fold_of(const std::string& op) {
  static const std::unordered_map<std::string, Fold> table = {
      {"Add", arithmetic('+')},          {"Cast", of(cast)},
      {"Ceil", rounding(std::ceil)},     {"Concat", of(concat_constants)},
      {"ConstantOfShape", filled},       {"Div", arithmetic('/')},
      {"Floor", rounding(std::floor)},   {"Gather", of(gather)},
      {"Identity", of(first_input)},     {"Mul", arithmetic('*')},
      {"Reshape", of(reshape_constant)}, {"Slice", of(slice_constant)},
      {"Shape", of(shape_of)},           {"Squeeze", of(squeeze)},
      {"Sub", arithmetic('-')},          {"Transpose", of(transpose_constant)},
      {"Unsqueeze", of(unsqueeze)},
  };
  const auto row = table.find(op);
  return row == table.end() ? nullptr : &row->second;
}

std::optional<NamedTensor> value_of_constant(const Node& node, const std::string& origin) {
  const Attribute* value = node.find("value");
  if (value && value->has_tensor) return numbers_of(value->tensor, origin);
  if (const Attribute* one = node.find("value_float"))
    return NamedTensor{.shape = {}, .values = std::vector<float>{one->real}};
  if (const Attribute* one = node.find("value_int"))
    return NamedTensor{.shape = {}, .values = std::vector<int64_t>{one->integer}};
  if (const Attribute* all = node.find("value_ints"))
    return NamedTensor{.shape = {int64_t(all->integers.size())}, .values = all->integers};
  if (const Attribute* all = node.find("value_floats"))
    return NamedTensor{.shape = {int64_t(all->reals.size())}, .values = all->reals};
  return {};
}

}  // namespace antichain::onnx
