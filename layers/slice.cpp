#include "layers/slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "framework/error.h"
#include "layers/check_inputs.h"
#include "layers/dense_view.h"

namespace antichain {

Slice::Slice(SliceOptions o) : options(o) {
  if (o.axis < 1) throw Error(fmt::format("{} would slice the samples: choose an axis from 1", str()));
  if (o.step < 1) throw Error(fmt::format("{} has a step that is not positive", str()));
}

std::string Slice::str() const {
  const SliceOptions& o = options;
  const std::string end = o.end == SliceOptions().end ? "" : std::to_string(o.end);
  return fmt::format("slice(axis {}, {}:{}:{})", o.axis, o.begin, end, o.step);
}

Slice::Part Slice::part(int64_t extent) const {
  const auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent); };
  const int64_t begin = within(options.begin), length = within(options.end) - begin;
  return {begin, length <= 0 ? 0 : (length - 1) / options.step + 1};
}

Signature Slice::infer(std::span<const Shape> x) const {
  check_inputs("slice", x, 1, 0);
  if (options.axis >= x[0].rank())
    throw Error(fmt::format("{} wants an axis that {} does not have", str(), x[0].str()));
  Signature s;
  s.y = {.shape = x[0]};
  s.y.shape[options.axis] = part(x[0][options.axis]).count;
  if (s.y.shape[options.axis] == 0) throw Error(fmt::format("{} of {} is empty", str(), x[0].str()));
  return s;
}

bool cuts_no_block(const Slice& op, const Shape& x, Layout layout) {
  if (layout == Layout::plain || op.options.axis != 1) return true;
  const int64_t block = DenseView({.shape = x, .layout = layout}).block;
  if (block == 1) return true;
  const auto [begin, count] = op.part(x[1]);
  return op.options.step == 1 && begin % block == 0 && (count % block == 0 || begin + count == x[1]);
}

SliceRuns runs_of(const Slice& op, const TensorSpec& x) {
  ANTICHAIN_CHECK(cuts_no_block(op, x.shape, x.layout), "a slice takes whole blocks of channels");
  const DenseView view(x);
  const int place = view.place(op.options.axis);
  const auto product = [&](int from, int to) {
    return std::accumulate(view.dims.begin() + from, view.dims.begin() + to, int64_t(1), std::multiplies());
  };
  const int64_t inner = product(place + 1, view.dims.rank()), step = op.options.step;
  auto [begin, count] = op.part(x.shape[op.options.axis]);
  if (op.options.axis == 1) {
    begin /= view.block;
    count = (count + view.block - 1) / view.block;
  }
  SliceRuns runs{.rows = product(0, place), .row = view.dims[place] * inner, .first = begin * inner};
  runs.count = step == 1 ? 1 : count;
  runs.run = step == 1 ? count * inner : inner;
  runs.stride = step == 1 ? runs.run : step * inner;
  return runs;
}

NodeId slice(Graph& graph, std::string name, NodeId x, SliceOptions options) {
  return graph.add(std::move(name), std::make_shared<Slice>(options), {x});
}

std::vector<NodeId> split(Graph& graph, const std::string& name, NodeId x, const std::vector<int64_t>& sizes,
                          int axis) {
  const Shape shape = graph.shape(x);
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
  if (axis < 1 || axis >= shape.rank() || all != shape[axis])
    throw Error(fmt::format("'{}' cannot split axis {} of {} into {}", name, axis, shape.str(),
                            fmt::join(sizes, " + ")));
  std::vector<NodeId> slices;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    slices.push_back(slice(graph, fmt::format("{}.{}", name, slices.size()), x,
                           {.axis = axis, .begin = begin, .end = begin + size}));
    begin += size;
  }
  return slices;
}

}  // namespace antichain
