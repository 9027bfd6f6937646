// Concat joins tensors; Slice, Split and Gather take parts of them.
#include <fmt/format.h>

#include <algorithm>

#include "layers/concat.h"
#include "layers/slice.h"
#include "models/onnx/rows/rows.h"

namespace antichain::onnx::row {
namespace {

// Returns x[begin:end:step] along an axis.
Value part(Translation& t, const Value& x, int axis, int64_t begin, int64_t end, int64_t step = 1) {
  const int64_t extent = t.shape(x)[size_t(axis)];
  begin = place_in(begin, extent), end = place_in(end, extent);
  if (begin == 0 && end == extent && step == 1) return x;
  if (axis == 0) throw Unsupported{"a part of the samples"};
  if (step < 1 || begin >= end) throw Unsupported{fmt::format("an empty part [{}:{}:{}]", begin, end, step)};
  return t.emit(std::make_shared<Slice>(
                    SliceOptions{.axis = x.order[size_t(axis)], .begin = begin, .end = end, .step = step}),
                {x}, x.order);
}

}  // namespace

void concat(Translation& t) {
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

void slice(Translation& t) {
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

void split(Translation& t) {
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

void gather(Translation& t) {
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

}  // namespace antichain::onnx::row
