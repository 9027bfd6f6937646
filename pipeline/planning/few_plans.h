// Where plans are few, the program of each is compiled: all cuts, and all choices of what is recomputed. This
// is for limits of memory, which the formula of partition/plan/stage_cost.h only comes close to. In a small
// network messages and working sets can outweigh what it counts.
#pragma once

#include <cstdint>
#include <optional>

#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

struct FewPlans {
  std::optional<Plan> fastest;  // by the objective, a step or a period, of those that fit the devices
  int64_t least_bytes = 0;      // of each device that would do
};
// Returns nothing where there are more than a few thousand plans, or more than one way to place the stages of
// a plan: replicas, several stages a rank, different devices.
std::optional<FewPlans> try_all_plans(const Profile&, const PlanOptions&, const Policy&);

}  // namespace antichain
