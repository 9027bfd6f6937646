// This file makes the schedule of a named policy, or reads the user's schedule file.
#pragma once

#include <string>

#include "app/obtain/given_files.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// Returns the text for a schedule file: the CSV of PyTorch's pipelining where its name ends in .csv, else our
// own.
std::string schedule_text(const Schedule&, const std::string& file);

// Returns the given schedule, validated, else that of the policy `name`.
Schedule obtain_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                         int microbatches);
// Does the same, and throws Error where the schedule has no backwards.
Schedule obtain_training_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                                  int microbatches);

}  // namespace antichain
