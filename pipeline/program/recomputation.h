// This pass says when a stage computes again what its plan does not keep.
//
// All forwards of a segment (partition/plan/recompute.h) run again before the first backward that reads any
// of it: Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", arXiv 2016. A segment
// that reads an earlier one's outputs makes that one run before it.
#pragma once

#include <vector>

#include "pipeline/program/step_network.h"

namespace antichain {

// A BackwardOrder is the sequence of calls of one form of a stage's backward, last node first. Times count
// calls. All vectors go by position in the stage.
struct BackwardOrder {
  std::vector<std::vector<int>> again;  // the nodes whose forwards run again before the backward, ascending
  std::vector<int> again_at;            // when a node's forward runs again; −1: it does not
  std::vector<int> backward_at;
  int end = 0;  // after the last call
};
// `consumers` and `position` are of all nodes of the network; a position is −1 for a node of another stage.
BackwardOrder backward_order(const StepNetwork&, const std::vector<int>& stage,
                             const std::vector<int>& position, const std::vector<std::vector<int>>& consumers,
                             const std::vector<int>& recomputed, int begin);

}  // namespace antichain
