// A greedy order comes from playing a step through: the rank that can begin earliest comes next, and a
// dispatching rule chooses its action (Panwalkar and Iskander, "A Survey of Scheduling Rules", Operations
// Research 1977). Searches start from such orders.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/planning/order_estimate.h"

namespace antichain {

// What ranks may have in flight: each micro-batch of a stage takes `takes`, and a rank has room for `most`.
struct InFlightLimits {
  std::vector<int64_t> takes;  // by stage
  std::vector<int64_t> most;   // by rank, numbered as in PipelineTimes
  // By rank: whether the most of each stage counts, because stages have buffers of their own, or else the
  // most at once.
  std::vector<bool> of_each_stage;
  // Says whether the rank keeps its limit, from the beginning of F to the end of W.
  bool keep(int rank, const RankOrder&) const;
};

struct DispatchingRule {
  bool gradients_first = true;  // an input half before a forward where both are there
  double patience = 0;          // waits for what comes within so many lengths of a weight half
};

// Keeps the limits. Of several stages of a rank the latest goes first. Ranks begin at the given times; {}
// means that all begin at 0. Returns nothing where all ranks get stuck before the step is done.
std::optional<RankOrders> greedy_order(const OrderEstimate&, const InFlightLimits&, DispatchingRule,
                                       const std::vector<double>& begins_s = {});

}  // namespace antichain
