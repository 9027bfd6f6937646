// This search finds the order of forwards, input and weight halves with the smallest step for a given plan,
// or with the smallest period where steps overlap, under a limit of micro-batches in flight on every rank.
//
//   1. every named schedule for such a plan that keeps the limits, and greedy orders
//      (pipeline/planning/greedy_order.h)
//   2. from the best of them: exchanges of neighbours on the critical path, or on the critical circle of the
//      period, as for job shops (Van Laarhoven, Aarts and Lenstra, "Job Shop Scheduling by Simulated
//      Annealing", Operations Research 1992). An I and the W of its micro-batch right behind it may become
//      one B, and the reverse
//
// Micro-batches stay in order on every rank, so an order is three counters a rank, and no bit changes. The
// budget is counted in actions, and random numbers come from a fixed seed: the result is the same everywhere.
// Where devices have a limit of memory, only orders whose compiled program fits are kept, if there are any.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "partition/plan/plan.h"
#include "partition/plan/steps.h"
#include "partition/profile/cluster.h"
#include "pipeline/planning/order_estimate.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

struct PlannedOrder {
  Schedule schedule;
  RankOrders orders;  // the same
  Steps steps = Steps::apart;
  double step_s = 0, period_s = 0;  // as simulate() says
  double bound_s = 0;               // no order under the limits has a shorter step, or period
  int64_t lacking_bytes = 0;        // of memory, by the compiled program, summed over ranks
  double pace_s() const { return steps == Steps::apart ? step_s : period_s; }
  bool proved() const { return pace_s() <= bound_s * (1 + 1e-9); }
};

// OrderMemo keeps the orders that were found. A plan is made with its order, and the schedule that is made
// for the plan later asks for that order, by the times and limits that it was searched for.
class OrderMemo {
 public:
  struct Asked {
    PipelineTimes times;
    std::vector<int64_t> most_in_flight;  // by rank, of InFlightLimits
    std::vector<int64_t> memory_bytes;    // by rank; empty where no device is limited
    Steps steps = Steps::apart;
    bool operator==(const Asked&) const = default;
  };
  const RankOrders* find(const Asked&) const;  // nullptr where nobody has asked so far
  void keep(Asked, RankOrders);

 private:
  std::vector<std::pair<Asked, RankOrders>> found_;
};

// An OrderRequest asks for the smallest period where steps overlap, and else for the smallest step. `effort`
// is the share of the full budget that may be spent.
struct OrderRequest {
  Steps steps = Steps::apart;
  double effort = 1;
  std::optional<RankOrders> start = {};  // one more order to start from
  bool by_formula = false;               // orders fit that keep the limits of micro-batches in flight
  OrderMemo* memo = nullptr;  // answers where it knows an order, and else keeps the one that is found
};

// Returns by rank as many micro-batches in flight as there are ranks. Where the rank's device has a limit of
// memory, it is as many as fit by the planners' formula (partition/plan/stage_cost.h), but at least one. It
// is never more than all.
std::vector<int> default_in_flight(const Profile&, const Plan&, const Cluster&, int microbatches);

// Does the same for one rank, by what its stage holds of weights and keeps of a micro-batch.
int default_in_flight(int ranks, int microbatches, int64_t memory_bytes, int64_t held_bytes,
                      int64_t kept_bytes);

// `in_flight` is per rank. On a rank with v stages a micro-batch of one of them counts 1 / v; where the
// rank's device has a limit of memory, it counts by what it keeps, and the most of each stage must fit
// together. Throws Error for a plan with replicas, and where a limit is less than 1 or no order keeps the
// limits.
PlannedOrder plan_order(const Profile&, const Plan&, const Cluster&, int microbatches,
                        const std::vector<int>& in_flight, const OrderRequest& = {});

}  // namespace antichain
