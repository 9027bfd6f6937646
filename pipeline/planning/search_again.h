// Cuts are searched by the formula of memory, but what fits is decided by the compiled program
// (memory_fit.h). So searches follow one another until the program fits, and the smallest memory is sought
// for which they find a plan.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "partition/plan/method.h"
#include "partition/plan/plan_options.h"
#include "partition/plan/recompute.h"
#include "partition/search/antichain_search.h"
#include "pipeline/planning/cut_and_order.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

struct CutSearch {
  Policy cut_for;
  Method method;
  std::function<CutAndOrder(const PlanOptions&)> find;  // throws Error where nothing fits by the formula
  std::function<void(CutAndOrder&)> time;  // sets the pace of a plan of which stages recompute more
  bool may_be_few = false;                 // whether all plans may be tried where they are few (few_plans.h)
  bool by_formula = false;                 // whether the first search decides
};
// Returns nothing where none was found that fits. The bound is the first search's.
std::optional<CutAndOrder> search_again(const Profile&, const PlanOptions&, const CutSearch&);

// Returns the smallest memory of each device, to half a percent, for which `fits` finds a plan. So it is not
// exact. The search begins with what the formula needs at least.
LeastMemory least_memory(const Profile&, const PlanOptions&, const Policy&, const Recomputation&,
                         const std::function<bool(const PlanOptions&)>& fits);
// Returns the least that the formula needs on each device.
int64_t least_by_formula(const Profile&, const PlanOptions&);

// Returns the options where every device has so much memory; 0: without limit.
PlanOptions within(PlanOptions, int64_t memory_bytes);
// Takes from each device what is lacking most on any, and at least a little.
void step_down(Cluster&, const std::vector<int64_t>& lacking);

}  // namespace antichain
