// Slice takes a part of every sample along one axis: torch's x[:, begin:end:step], on any axis but the first.
// split cuts a tensor into neighbouring slices: torch.split.
//
//   x  of any rank     y  as x, with ceil((end − begin) / step) along the axis
//   dx = dy where y took a number, otherwise 0
#pragma once

#include <limits>
#include <vector>

#include "framework/graph.h"

namespace antichain {

struct SliceOptions {
  int axis = 1;
  int64_t begin = 0;
  int64_t end = std::numeric_limits<int64_t>::max();  // the first number that is left out
  int64_t step = 1;
  // A negative begin or end counts from the axis' end; one beyond it means the end.
};
template <class Visit>
void fields(SliceOptions& o, Visit&& visit) {
  visit("axis", o.axis);
  visit("begin", o.begin);
  visit("end", o.end);
  visit("step", o.step);
}

class Slice : public Op {
 public:
  explicit Slice(SliceOptions options);  // Error when an option makes no sense
  std::string_view type() const override { return "slice"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  // Where the slice lies in an axis of `extent`.
  struct Part {
    int64_t begin, count;
  };
  Part part(int64_t extent) const;

  const SliceOptions options;
};

// SliceRuns says how a slice lies in memory: of every row of x it takes runs of neighbouring elements.
struct SliceRuns {
  int64_t rows, row;     // row: elements of x from one row to the next
  int64_t first, count;  // where a row's first run begins, and how many runs it has
  int64_t run, stride;   // elements of a run, and from one run to the next
};
// Throws Error (a broken invariant) where the layout of x cuts the slice's blocks of channels; see
// cuts_no_block.
SliceRuns runs_of(const Slice&, const TensorSpec& x);
// Returns whether a slice of x in this layout is made of whole blocks of channels.
bool cuts_no_block(const Slice&, const Shape& x, Layout);

NodeId slice(Graph&, std::string name, NodeId x, SliceOptions);
// Adds a slice "name.0", "name.1", … of each of these sizes. Throws Error unless they sum to the axis'
// extent.
std::vector<NodeId> split(Graph&, const std::string& name, NodeId x, const std::vector<int64_t>& sizes,
                          int axis = 1);

}  // namespace antichain
