#include "models/onnx/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "framework/error.h"

namespace antichain::onnx {
namespace {

constexpr size_t most_integers = 1 << 16;
constexpr size_t most_axes = 16;

using Inputs = std::vector<Constant>;
using Folded = std::optional<NamedTensor>;

const std::vector<int64_t>* as_integers(const NamedTensor& t) {
  return std::get_if<std::vector<int64_t>>(&t.values);
}

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

Folded of_shape(const Node& node, const Inputs& x, const std::string& origin) {
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

// Of two tensors of one size, or a tensor and a number.
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

Folded rounded(const Inputs& x, float (*how)(float)) {
  NamedTensor y = *x[0];
  if (auto* values = std::get_if<std::vector<float>>(&y.values))
    std::ranges::transform(*values, values->begin(), how);
  return y;
}

}  // namespace

Constants::Constants(const Model& model, std::string origin, size_t bytes)
    : origin_(std::move(origin)), left_(int64_t(bytes) + (int64_t(4) << 20)) {
  for (const Tensor& tensor : model.graph.initializers)
    if (!files_.try_emplace(tensor.name, &tensor).second)
      throw Error(fmt::format("{}: two initializers have the name '{}'", origin_, tensor.name.substr(0, 256)),
                  "the file is damaged");
}

Constant Constants::find(const std::string& name) {
  if (const auto made = made_.find(name); made != made_.end()) return made->second;
  const auto file = files_.find(name);
  if (file == files_.end()) return nullptr;
  return made_[name] = std::make_shared<const NamedTensor>(numbers_of(*file->second, origin_));
}

void Constants::add(const std::string& name, NamedTensor tensor) {
  made_[name] = std::make_shared<const NamedTensor>(std::move(tensor));
}

void Constants::take(int64_t numbers) {
  left_ -= numbers;
  if (left_ < 0)
    throw Error(
        fmt::format("{}: its constants and weights grow to more numbers than the file has bytes", origin_),
        "no exporter writes such a network");
}

std::optional<NamedTensor> Constants::fold(const Node& node) {
  using Fold = std::function<Folded(const Node&, const Inputs&)>;
  static const auto arithmetic = [](char what) -> Fold {
    return [what](const Node&, const Inputs& x) { return pairwise(x, Arithmetic{what}); };
  };
  static const std::unordered_map<std::string, Fold> table = {
      {"Add", arithmetic('+')},
      {"Cast", cast},
      {"Ceil", [](const Node&, const Inputs& x) { return rounded(x, std::ceil); }},
      {"Concat", [](const Node&, const Inputs& x) { return concat_constants(x); }},
      {"Div", arithmetic('/')},
      {"Floor", [](const Node&, const Inputs& x) { return rounded(x, std::floor); }},
      {"Gather", gather},
      {"Identity", [](const Node&, const Inputs& x) { return Folded(*x[0]); }},
      {"Mul", arithmetic('*')},
      {"Reshape", [](const Node&, const Inputs& x) { return reshape_constant(x); }},
      {"Slice", [](const Node&, const Inputs& x) { return slice_constant(x); }},
      {"Shape",
       [](const Node& node, const Inputs& x) {
         return node.attributes.empty()
                    ? Folded(NamedTensor{.shape = {int64_t(x[0]->shape.size())}, .values = x[0]->shape})
                    : std::nullopt;
       }},
      {"Squeeze", squeeze},
      {"Sub", arithmetic('-')},
      {"Transpose", transpose_constant},
      {"Unsqueeze", unsqueeze},
  };
  if (!node.domain.empty() || node.outputs.size() != 1) return {};
  if (node.op == "Constant") {
    const Attribute* value = node.find("value");
    if (value && value->has_tensor) return numbers_of(value->tensor, origin_);
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
  const auto row = table.find(node.op);
  const bool of_a_shape = node.op == "ConstantOfShape";
  if ((row == table.end() && !of_a_shape) || node.inputs.empty()) return {};
  Inputs inputs;
  for (const std::string& name : node.inputs) {
    if (!has(name)) return {};
    inputs.push_back(find(name));
  }
  Folded result = of_a_shape ? of_shape(node, inputs, origin_) : row->second(node, inputs);
  if (result) take(result->elements());
  return result;
}

std::vector<int64_t> integers_of(const NamedTensor& t, const std::string& origin) {
  const std::vector<int64_t>* values = as_integers(t);
  if (!values || values->size() > most_integers)
    throw Error(fmt::format("{}: the tensor '{}' has {} where a few integers are expected", origin, t.name,
                            t.shape_text()));
  return *values;
}

std::optional<double> number_of(const NamedTensor& t) {
  if (t.elements() != 1) return {};
  return std::visit([](const auto& values) { return double(values[0]); }, t.values);
}

bool is_number(const Constant& c, double value) { return c && number_of(*c) == value; }

int64_t axis_in(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return -1;
  return axis < 0 ? axis + rank : axis;
}

int64_t place_in(int64_t place, int64_t extent, int64_t least) {
  if (place < 0) place = std::max(place, -extent - 1) + extent;
  return std::clamp(place, least, extent + least);
}

}  // namespace antichain::onnx
