// No plan's step can be shorter than the larger of
//
//   each node's time in a step         one rank does its M forwards and backwards. Its work, and the way of
//                                      the first micro-batch to the node, or of the last one there and back,
//                                      is done one after the other (node_bound_s)
//   M x the smallest bottleneck        some stage is the slowest, and its ranks do M micro-batches between
//                                      them
//
// Where steps overlap, the first holds for their period without the ways before the node and back from it,
// because a rank begins the next step after its own update. Where each rank has one stage and no
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
std::vector<KindProfile> with_updates(const std::vector<KindProfile>&, int microbatches);

// Returns the same network with each time of each node on whichever of the cluster's devices does it fastest,
// and the least overhead. No stage of any plan takes less than its nodes do here.
Profile least_times(const Profile&, const Cluster&);

// LongestWays has figures for each node, without overhead: the longest way of one micro-batch's forward from
// a source to this node's end, from there to the beginning of its backward, and of its gradient from there to
// a source, the last node's update included. Transfers take no time.
struct LongestWays {
  std::vector<double> there_s, trip_s, back_s;
};
// `halves` says that the schedule parts backwards into I and W. Then a gradient goes on after the I.
LongestWays longest_ways(const Profile&, bool halves = false);

// Returns the largest bound of a node, of which a rank does so many micro-batches, where times are the least
// on any device. It is for the period, or else for a step from an empty pipeline. Write f, i, w and u for the
// node's forward, input half, weight half and update. From its first forward to its update a rank takes at
// least
//
//   M (f + i + w) + u, as that is its work
//   f + trip + M (i + w) + u, as no backward begins before the first micro-batch is back
//   M f + trip + i + w + u, as the last micro-batch has to come back, too.
//
// A step has in addition the way there, and after the last input half the way back to a source.
double node_bound_s(const Profile&, int microbatches, bool halves, Objective);

// Returns the bound for any method's plan and any order that trains: of the period where that is the
// objective, and else of the step. `halves` is as above. It takes the search for the smallest bottleneck of
// the network with_updates, by the objective "compute", where that has been made: if that had limits of
// memory, the bound holds under these limits. Without one it searches, and supposes unlimited memory. Where
// ranks have several stages (options.chunks), only their even load and the largest node bound the bottleneck.
double pace_bound_s(const Profile&, const PlanOptions&, bool halves, const AntichainSearch* made = nullptr);

// Returns the bound, or the step where the two differ by rounding only.
double but_for_rounding(double bound_s, double step_s);

}  // namespace antichain
