// A greedy order comes from playing a step through: the stage that can begin earliest comes next, and a
// dispatching rule chooses its action (Panwalkar and Iskander, "A Survey of Scheduling Rules", Operations
// Research 1977). Searches start from such orders.
#pragma once

#include <optional>
#include <vector>

#include "pipeline/planning/order_estimate.h"

namespace antichain {

struct DispatchingRule {
  bool gradients_first = true;  // an input half before a forward where both are there
  double patience = 0;          // waits for what comes within so many lengths of a weight half
};

// Keeps the limits `in_flight`, which are by stage. Stages begin at the given times; {} means that all begin
// at 0. Returns nothing where all stages get stuck before the step is done.
std::optional<RankOrders> greedy_order(const OrderEstimate&, const std::vector<int>& in_flight,
                                       DispatchingRule, const std::vector<double>& begins_s = {});

}  // namespace antichain
