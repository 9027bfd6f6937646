// The one way from a profile to a plan: any method, any objective, the step simulated, and memory a hard
// limit.
//
//   compute, compute-or-transfer   the method's own plan
//   makespan                       method antichain: the search of pipeline/planning/makespan.h; any other:
//                                  its own plan as it is, beside the bound of
//                                  pipeline/planning/makespan_bound.h
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

std::vector<std::string> objective_names();

// Plan::step_s is of options.microbatches under the policy, which also says how many micro-batches are in
// flight (so options.in_flight is not read). Error as the planners, for an unknown objective or a policy
// without backwards, for more replicas than micro-batches, and when the plan of a method that does not look
// at memory does not fit: it names the stage, what it needs, and what would do.
Plan plan_network(const Profile&, const PlanOptions&, std::string_view method, Policy);

}  // namespace antichain
