// The best order depends on the cut, and the best cut on the order. So the two are searched in turns:
//
//   1. cuts by the bound that holds for every order (pipeline/planning/order_bound.h); where ranks have
//      several stages, by a dispatching rule that changes with them (pipeline/planning/dispatch_search.h)
//   2. the order for the best of them (pipeline/planning/order_search.h)
//   3. cuts by the time under that very order, then the order for them again, while that helps
#pragma once

#include <functional>
#include <vector>

#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"
#include "pipeline/planning/order_search.h"
#include "pipeline/planning/stage_sums.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

// These return the most micro-batches in flight. The first is for stages with these sums where each rank has
// one, by stage; `device` is by stage, too. The second is for a plan, by rank.
struct SearchLimits {
  std::function<std::vector<int>(const StageSums&, const std::vector<int>& device)> of_stages;
  std::function<std::vector<int>(const Plan&)> of_plan;
  bool by_formula = false;  // OrderRequest's
};

struct CutAndOrder {
  Plan plan;  // its step and period are the order's
  PlannedOrder order;
};

// Minimises the step, or the period where options.steps says that steps overlap. Each rank has
// options.chunks stages, where the policy places them, and no replicas. It must have the memory that the
// policy would need. Throws a usage Error where no plan fits.
CutAndOrder cut_and_order(const Profile&, const PlanOptions&, const Policy&, const SearchLimits&);

}  // namespace antichain
