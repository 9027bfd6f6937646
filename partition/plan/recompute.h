// A stage may compute some of its nodes again in the backward instead of keeping what it reads of them: Chen,
// Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", arXiv 2016.
//
// Such nodes fall into segments, which are runs of neighbours in the stage's order. A segment is computed
// again as a whole, once a micro-batch.
#pragma once

#include <string>
#include <vector>

#include "partition/plan/plan.h"

namespace antichain {

// A Segment has the nodes at the stage's positions from `first` to before `end`.
struct Segment {
  int first = 0, end = 0;
};
// Both lists ascend.
std::vector<Segment> segments(const std::vector<int>& stage, const std::vector<int>& recomputed);

// A Recomputation is what a user asks for.
struct Recomputation {
  bool all = false;                     // every node that some backward needs, besides losses
  std::vector<std::string> nodes = {};  // else these, by name
  bool automatic = false;               // else what takes least time of what fits (PlanOptions::recompute)
  bool given() const { return all || !nodes.empty(); }
  bool none() const { return !given() && !automatic; }
};
// Reads "none", "all", "auto", or the text of a file with one node a line, in which # begins a comment.
Recomputation parse_recomputation(const std::string& text);

// Returns the profile of the network in which these nodes are recomputed, for planners: their backward takes
// their forward longer, and they keep nothing. Throws Error naming a node that the network lacks, an input or
// a loss.
Profile recomputing(Profile, const Recomputation&);
// Makes the stages of a plan recompute them.
void recompute(Plan&, const Profile&, const Recomputation&);

}  // namespace antichain
