// Planning for several stages (chunks) a rank. A planner cuts the network as if each stage had a device of
// its own; then every stage goes to the rank that the policy's placement gives it.
#pragma once

#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"
#include "pipeline/planning/step_estimate.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

// The options with the policy's rule for micro-batches in flight, on so many ranks.
PlanOptions on_so_many(const PlanOptions&, const Policy&, int ranks);

// What a planner is asked for: options.stages x options.chunks stages, each on an equal device. The link is
// the slowest among the devices that are used, and memory has no limit, because a limit is one of all stages
// of a rank. The options as they are where chunks is 1.
PlanOptions one_device_a_stage(const PlanOptions&, const Policy&);

// The ranks and devices of so many stages. Of more devices than ranks, the fastest are used.
Ranks ranks_of_stages(const PlanOptions&, const Policy&, int stages);

// The plan with every stage on its rank, where options.chunks is above 1. Figures stay as they were. Error
// when the plan has another number of stages, or replicas.
Plan on_its_ranks(Plan, const PlanOptions&, const Policy&);

}  // namespace antichain
