// This bound is for all plans of one stage a rank, and for all orders of their micro-batches. A rank begins a
// step after its own update, so the period is no shorter than any rank's span from the first forward of a
// step to the update. Write f, i and w for a stage's forward, input half and weight half of one micro-batch,
// and u for its update. A stage that ends at the down-set D begins at E:
//
//   load   M (f + i + w) + u: all that its rank has to do
//   idle   M (f + i + w) + u + trip(D) − (M − 1) f: before its first input half its rank has M forwards to
//          do, and waits for a round trip to the loss
//   way    fill(E) + M (f + i) + w₀ + u₀: the first stage's rank has sent a micro-batch as far as this stage
//          before the stage begins, and it needs the last gradient back before its last weight half
//
// A waist is a node that every other node is before or after. A stage that holds a waist needs all such
// stages before it, and all such stages after it need it. So where every stage holds a waist, fill(E) and
// trip(D) are sums over whole stages. Where some stage holds none, trip(D) comes from the maximal nodes of D:
// each has a longest way of forwards and input halves beyond it, and the shortest of these counts. fill(E) is
// then the larger of two figures: the sum without the stages that hold no waist, and the longest way before
// some node that can be next after E. The two cases are tested apart.
//
// Dynamic programming over the antichain DAG tests for a period T whether some cut keeps all three within T,
// and bisection finds the least such T. Each test keeps, of the down-sets where a stage may begin, the best
// for each bound on its own. That can only make the bound smaller; on a chain all three are best at the same
// one.
#pragma once

#include "partition/plan/plan_options.h"
#include "partition/profile/profile.h"
#include "partition/search/antichain_dag.h"

namespace antichain {

// Returns a bound in seconds on the period, and so on the step, of all plans without replicas that give each
// of at most options.stages ranks one stage. It is at least `known_s`, which is another such bound. The times
// are the least on any device (least_times in pipeline/planning/makespan_bound.h), and `dag` has all
// down-sets of the network.
double round_trip_bound_s(const Profile& least, const PlanOptions&, const AntichainDag&, double known_s);

}  // namespace antichain
