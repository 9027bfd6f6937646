// This file makes the schedule of a named policy, searches the order of `auto`, or reads the user's schedule
// file.
#pragma once

#include <string>

#include "app/obtain/given_files.h"
#include "app/obtain/plan_task.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// Returns the text for a schedule file: the CSV of PyTorch's pipelining where its name ends in .csv, else our
// own.
std::string schedule_text(const Schedule&, const std::string& file);

// Returns the given schedule, validated, else that of the policy that the task names, or for `auto` the order
// that is planned for this plan.
Schedule obtain_schedule(const GivenFiles&, const PlanTask&, const Profile&, const Plan&);
// Does the same, and throws Error where the schedule has no backwards.
Schedule obtain_training_schedule(const GivenFiles&, const PlanTask&, const Profile&, const Plan&);

// Collective. With `auto` rank 0 plans the order, and the result has its text for all ranks.
GivenFiles broadcast_order(GivenFiles, const PlanTask&, const Profile&, const Plan&, Job&);

}  // namespace antichain
