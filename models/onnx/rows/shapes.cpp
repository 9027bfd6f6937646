// These operators change the shape of a tensor or return it, and leave the numbers as they are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/onnx/rows/rows.h"

namespace antichain::onnx::row {

void shape(Translation& t) {
  const std::vector<int64_t> shape = t.shape(t.input());
  const int64_t rank = int64_t(shape.size());
  const int64_t begin = place_in(t.node().integer("start", 0), rank);
  const int64_t end = std::max(begin, place_in(t.node().integer("end", rank), rank));
  t.give(0, NamedTensor{.shape = {end - begin},
                        .values = std::vector<int64_t>(shape.begin() + begin, shape.begin() + end)});
}

void reshape(Translation& t) {
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

void flatten(Translation& t) {
  const Value x = t.input();
  if (t.axis(x, t.node().integer("axis", 1)) != 1) throw Unsupported{"Flatten at another axis than 1"};
  int64_t numbers = 1;
  const std::vector<int64_t> shape = t.shape(x);
  for (size_t i = 1; i < shape.size(); ++i) numbers *= shape[i];
  t.give(0, t.reshape(x, {numbers}));
}

void squeeze(Translation& t) {
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

void unsqueeze(Translation& t) {
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

void transpose(Translation& t) {
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

}  // namespace antichain::onnx::row
