// Mean averages every sample over some of its axes: torch.mean.
//
//   x  of rank 2 to 6     y  x without the axes, or with an extent of 1 in their place (keep_dims)
//   dx = dy / (numbers of a mean), repeated along the axes
#pragma once

#include <vector>

#include "framework/graph.h"
#include "layers/strided.h"

namespace antichain {

struct MeanOptions {
  std::vector<int> axes = {};
  bool keep_dims = false;
};
template <class Visit>
void fields(MeanOptions& o, Visit&& visit) {
  visit("axes", o.axes);
  visit("keep_dims", o.keep_dims);
}

class Mean : public Op {
 public:
  // Error unless the axes are ascending and the first is at least 1. At most two runs of neighbouring axes
  // are averaged at once.
  explicit Mean(std::vector<int> axes, bool keep_dims = false);
  std::string_view type() const override { return "mean"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  bool averages(int axis) const;

  const std::vector<int> axes;
  const bool keep_dims;
};

// MeanAxes says how the sums lie in memory. Sum i begins at sums.at(i), and its terms lie at terms.at(j) from
// there. Element k of x is a term of sum sum_of.at(k).
struct MeanAxes {
  Strided<3> sums;
  Strided<2> terms;
  Strided<Shape::max_rank> sum_of;
};
MeanAxes mean_axes(const Mean&, const TensorSpec& x);
// Lowers a mean of numbers in the given layout. They are in the plain one where no layout of y has its
// numbers in the order of the sums, or where the given layout blocks the channels that are averaged.
Lowering lower_mean(const Mean&, const Shape& x, Layout, Precision);

NodeId mean(Graph&, std::string name, NodeId x, std::vector<int> axes, bool keep_dims = false);

}  // namespace antichain
