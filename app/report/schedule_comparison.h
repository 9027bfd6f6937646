// A ScheduleComparison sets all policies side by side, on one network and one cluster. Each has a plan of its
// own, because each has its own number of stages a rank.
#pragma once

#include <string>

#include "app/obtain/given_files.h"
#include "app/options/planning_options.h"
#include "partition/profile/profile.h"

namespace antichain {

// Returns a table with a row for each policy that trains: the step, the longest span of a rank, the bubble,
// the speedup over one device, the peak memory of the fullest rank, and the messages of a step. Below it
// stands why a policy has no row of figures. `ranks` is the number of devices where neither an option nor the
// cluster says it. Throws the policy's Error where none has a plan.
std::string compare_schedules(const PlanningOptions&, const GivenFiles&, const Profile&, int microbatches,
                              int ranks);

}  // namespace antichain
