// This search finds the order of forwards, input and weight halves with the smallest step for a given plan,
// under a limit of micro-batches in flight on every rank.
//
//   1. every named schedule that keeps the limits, and greedy orders: each rank does an input half if its
//      gradient is there, else a forward, else a weight half
//   2. from the best of them: exchanges of neighbours on the critical path, as for job shops (Van Laarhoven,
//      Aarts and Lenstra, "Job Shop Scheduling by Simulated Annealing", Operations Research 1992). An I and
//      the W of its micro-batch right behind it may become one B, and the reverse
//
// Micro-batches stay in order on every rank, so an order is three counters a rank, and no bit changes. The
// budget is counted in actions, and random numbers come from a fixed seed: the result is the same everywhere.
//
// No order is shorter than any of these bounds of a rank, whose first forward can't begin before `fill`:
//
//   load     fill + all its work + its update
//   gradient fill + its forwards, input halves and the weight halves that the limit wants before the last
//            forward, + the way of the last gradient to the first stage, with what follows there
//   trips    of L micro-batches in flight each begins when the one L before it has ended: ⌈M / L⌉ ways to
//            the loss and back, one after the other
#pragma once

#include <vector>

#include "partition/plan/plan.h"
#include "partition/profile/cluster.h"
#include "pipeline/planning/order_clock.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

struct PlannedOrder {
  Schedule schedule;
  double step_s = 0;   // as simulate() says
  double bound_s = 0;  // no order under the limits is shorter
  bool proved() const { return step_s <= bound_s * (1 + 1e-9); }
};

// Returns by rank as many micro-batches in flight as there are stages. Where the rank's device has a limit of
// memory, it is as many as fit by the planners' formula (partition/plan/stage_cost.h), but at least one. It
// is never more than all.
std::vector<int> default_in_flight(const Profile&, const Plan&, const Cluster&, int microbatches);

// `in_flight` is per rank. Throws Error for a plan with replicas or several stages a rank, and where a limit
// is less than 1 or no order keeps the limits.
PlannedOrder plan_order(const Profile&, const Plan&, const Cluster&, int microbatches,
                        const std::vector<int>& in_flight);

// The bound alone. `in_flight` is by stage.
double order_bound_s(const OrderClock&, const std::vector<int>& in_flight);

}  // namespace antichain
