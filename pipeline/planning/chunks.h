// A rank may have several stages (chunks). A planner then cuts the network as if each stage had a device of
// its own, and every stage goes to the rank that the policy's placement gives it.
#pragma once

#include "partition/plan/method.h"
#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"
#include "partition/search/stage_fitter.h"
#include "pipeline/planning/step_estimate.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// Returns the options with the policy's rule for micro-batches in flight, on so many ranks.
PlanOptions on_so_many(const PlanOptions&, const Policy&, int ranks);

// Returns the options for the micro-batches that this schedule has in flight.
PlanOptions for_schedule(PlanOptions, const Schedule&);

// Returns what a planner is asked for: options.stages x options.chunks stages, each on an equal device. The
// link is the slowest among the devices that are used. Memory has no limit, because a limit is for all stages
// of a rank together. Where chunks is 1, the options stay as they are.
PlanOptions one_device_a_stage(const PlanOptions&, const Policy&);

// Returns the ranks and devices of so many stages. Of more devices than ranks, the fastest are used.
Ranks ranks_of_stages(const PlanOptions&, const Policy&, int stages);

// Has the stages that do not fit recompute what makes them fit, if anything does, in least time. Stages of
// one rank share its memory. The cut stays as it is, and its figures become those of the options.
void make_fit(Plan&, const Profile&, const PlanOptions&, const StageFitter&);

// Returns the plan that a method's own planner makes, with every stage on its rank. Throws Error where it
// parts nodes that sit together.
Plan plan_by(Method, const Profile&, const PlanOptions&, const Policy&, const StageFitter&);

// Returns the plan with every stage on its rank, where options.chunks is above 1. Figures stay as they were.
// Throws Error when the plan has another number of stages, or replicas.
Plan on_its_ranks(Plan, const PlanOptions&, const Policy&);

}  // namespace antichain
