#include "layers/mean.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "framework/error.h"
#include "layers/check_inputs.h"
#include "layers/dense_view.h"

namespace antichain {

Mean::Mean(std::vector<int> a, bool keep) : axes(std::move(a)), keep_dims(keep) {
  const bool ascend = std::ranges::adjacent_find(axes, std::greater_equal()) == axes.end();
  if (axes.empty() || axes.front() < 1 || !ascend)
    throw Error(fmt::format("{} wants ascending axes from 1: samples are not averaged", str()));
  const auto begins = [&](int axis) { return !averages(axis - 1); };
  if (std::ranges::count_if(axes, begins) > 2)
    throw Error(fmt::format("{} averages more than two runs of axes: take a mean of a mean", str()));
}

std::string Mean::str() const {
  return fmt::format("mean({}{})", fmt::join(axes, ", "), keep_dims ? ", kept" : "");
}

bool Mean::averages(int axis) const { return std::ranges::binary_search(axes, axis); }

Signature Mean::infer(std::span<const Shape> x) const {
  check_inputs("mean", x, 1, 0);
  if (axes.back() >= x[0].rank())
    throw Error(fmt::format("{} wants an axis that {} does not have", str(), x[0].str()));
  std::vector<int64_t> extents;
  for (int axis = 0; axis < x[0].rank(); ++axis)
    if (!averages(axis) || keep_dims) extents.push_back(averages(axis) ? 1 : x[0][axis]);
  Signature s;
  s.y = {.shape = Shape(extents)};
  s.forward_flops = double(x[0].elements());
  return s;
}

namespace {

// Returns for each dimension of the view whether it is averaged.
std::vector<bool> averaged(const Mean& op, const DenseView& view, int rank) {
  std::vector<bool> all(size_t(view.dims.rank()));
  for (int axis = 0; axis < rank; ++axis) all[size_t(view.place(axis))] = op.averages(axis);
  return all;
}

// Appends axes from the innermost outwards; one that continues the last is merged with it.
template <int axes>
struct FromInnermost {
  Strided<axes>& of;
  int left = axes;

  void add(int64_t extent, int64_t stride) {
    if (left < axes && of.strides[left] * of.extents[left] == stride) {
      of.extents[left] *= extent;
      return;
    }
    ANTICHAIN_CHECK(left > 0, "axes that neighbour each other are merged");
    of.extents[--left] = extent;
    of.strides[left] = stride;
  }
};

// Returns the layout of y, whose numbers are in the order of the sums, or nothing where no layout of y is in
// that order, or where the layout of x blocks the channels that are averaged.
std::optional<Layout> layout_of_means(const Mean& op, const Shape& x, Layout layout) {
  if (layout == Layout::plain) return Layout::plain;
  const bool blocks = DenseView({.shape = x, .layout = layout}).block > 1;
  if (blocks && op.averages(1)) return std::nullopt;
  if (op.keep_dims) return layout;
  // Without a row or a column, an image's channels have to be the only numbers left, or none of them.
  const bool pixels = op.averages(2) && op.averages(3);
  const bool fills = x[1] % DenseView({.shape = x, .layout = layout}).block == 0;
  if (op.averages(1) || (pixels && fills)) return Layout::plain;
  return std::nullopt;
}

}  // namespace

MeanAxes mean_axes(const Mean& op, const TensorSpec& x) {
  const DenseView view(x);
  const std::vector<bool> of_terms = averaged(op, view, x.shape.rank());
  MeanAxes all;
  FromInnermost<3> sums{all.sums};
  FromInnermost<2> terms{all.terms};
  int64_t stride = 1, sum_stride = 1;
  for (int i = view.dims.rank() - 1, axis = Shape::max_rank - 1; i >= 0; --i, --axis) {
    const int64_t extent = view.dims[i];
    of_terms[size_t(i)] ? terms.add(extent, stride) : sums.add(extent, stride);
    all.sum_of.extents[axis] = extent;
    all.sum_of.strides[axis] = of_terms[size_t(i)] ? 0 : sum_stride;
    sum_stride *= of_terms[size_t(i)] ? 1 : extent;
    stride *= extent;
  }
  return all;
}

Lowering lower_mean(const Mean& op, const Shape& x, Layout layout, Precision precision) {
  const std::optional<Layout> of_y = layout_of_means(op, x, layout);
  return {.x = {of_y ? layout : Layout::plain},
          .y = of_y.value_or(Layout::plain),
          .precision = precision,
          .adds_dx = true};
}

NodeId mean(Graph& graph, std::string name, NodeId x, std::vector<int> axes, bool keep_dims) {
  return graph.add(std::move(name), std::make_shared<Mean>(std::move(axes), keep_dims), {x});
}

}  // namespace antichain
