// No plan's step can be shorter than the larger of
//
//   one micro-batch's critical path    forwards along a path of the network, backwards along one to a source,
//                                      each node on the fastest device, no transfers; the update of a node
//                                      that its gradient ends at. Where a schedule parts backwards, a
//                                      gradient goes on after the input half
//   M x the smallest bottleneck        some stage is the slowest, and its ranks do M micro-batches between
//                                      them
//
// Where steps overlap, only the second holds for their period. Where each rank has one stage and no
// replicas, a third holds for both: that of a rank's round trips (pipeline/planning/round_trip_bound.h).
//
// Times of updates count as a share of every micro-batch, update_s / M: a rank does M micro-batches and one
// update.
#pragma once

#include <vector>

#include "partition/plan/plan_options.h"
#include "partition/search/antichain_search.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

// Returns the same network with every node's share of its update in its backward. Planners should balance
// this.
Profile with_updates(const Profile&, int microbatches);

// LongestWays has figures for each node, on a device of speed 1 and without overhead: the longest way of one
// micro-batch's forward from a source to this node's end, and of its gradient from this node's beginning to a
// source, the last node's update included.
struct LongestWays {
  std::vector<double> there_s, back_s;
};
// `halves` says that the schedule parts backwards into I and W.
LongestWays longest_ways(const Profile&, bool halves = false);

double critical_path_s(const Profile&, double fastest, bool halves = false);

// Returns the bound for any method's plan and any order that trains: of the period where that is the
// objective, and else of the step. `halves` is as above. It takes the search for the smallest bottleneck of
// the network with_updates, by the objective "compute", where that has been made: if that had limits of
// memory, the bound holds under these limits. Without one it searches, and supposes unlimited memory. Where
// ranks have several stages (options.chunks), only their even load and the largest node bound the bottleneck.
double pace_bound_s(const Profile&, const PlanOptions&, bool halves, const AntichainSearch* made = nullptr);

// Returns the bound, or the step where the two differ by rounding only.
double but_for_rounding(double bound_s, double step_s);

}  // namespace antichain
