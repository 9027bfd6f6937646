// A greedy order comes from playing a step through. The stage that can begin first of all does something
// next, by a dispatching rule (Panwalkar and Iskander, "A Survey of Scheduling Rules", Operations Research
// 1977). Orders that are made so are where searches start.
#pragma once

#include <optional>
#include <vector>

#include "pipeline/planning/order_estimate.h"

namespace antichain {

struct DispatchingRule {
  bool gradients_first = true;  // an input half before a forward where both are there
  double patience = 0;          // waits for what comes within so many lengths of a weight half
};

// Keeps `in_flight` by stage. Stages begin at the given times; {} means that all begin at 0. Returns nothing
// where nobody can go on before all is done.
std::optional<RankOrders> greedy_order(const OrderEstimate&, const std::vector<int>& in_flight,
                                       DispatchingRule, const std::vector<double>& begins_s = {});

}  // namespace antichain
