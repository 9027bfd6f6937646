// This search finds the plan with the shortest step. The step is simulated, with fill and drain, links and
// the messages that the runner sends.
//
// There are too many plans to simulate, and the bottleneck says most about the step. So the search starts
// from plans with the smallest bottleneck, their ties and near-ties, and the cheap baselines, and climbs from
// the best of them. The result is no worse than any of these. Where the cuts are few enough to try them all,
// it is proved to be the best.
#pragma once

#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

// options.objective is makespan, or period: then the plan has the bound of the period. Bounds are those of
// makespan_bound.h. Throws Error as plan_antichain does.
Plan plan_makespan(const Profile&, const PlanOptions&, const Policy&);

}  // namespace antichain
