// An explanation says what a plan's step is made of, which of that binds, and what more hardware would give.
//
//   load      the work of a step, shared equally by the devices
//   uneven    what the slowest device has more than the mean
//   rest      fill and drain, updates, the overhead of actions: the step over links that take no time, less
//             the two above
//   messages  the step, less the step of the same plan over such links
//
// The four add up to the step (to the period where steps overlap). What would shorten it is planned anew, by
// the same method under the same schedule, with one thing changed. What binds is the largest of the last
// three, or what a plan for links that take no time saves, or the load where all these are small; and memory
// where a plan without limits is faster.
#pragma once

#include <string>

#include "app/obtain/plan_task.h"

namespace antichain {

std::string explain(const Plan&, const Profile&, const PlanTask&);

}  // namespace antichain
