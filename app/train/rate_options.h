// These options of `antichain train` describe the learning rate: its peak, its schedule with what that
// schedule alone has, and its warm-up.
#pragma once

#include "app/cli/cli_forward.h"
#include "app/train/train_options.h"

namespace antichain {

// Returns what a manifest says of the warm-up. It depends on the length of an epoch where the recipe has a
// warm-up.
inline constexpr const char* warmup_fact = "warm-up steps";

void add_rate_options(CLI::App&, TrainCommandOptions&);

// Throws a usage Error when an option was given that another learning-rate schedule has. The recipe has
// chosen the schedule before.
void check_rate_options(const CLI::App& train, const LearningRateOptions&);

}  // namespace antichain
