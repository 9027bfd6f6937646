// What the command line leaves open about a training, the model's recipe fills (models/recipe.h).
#pragma once

#include <string>

#include "app/loss_watch.h"
#include "app/train_options.h"
#include "models/recipe.h"

namespace antichain {

// Options of `train` that were not given become the recipe's: the batch, the rate (in proportion to the batch) and its course,
// momentum, weight decay, and without --steps the epochs.
//
// The recipe's course is as long as the recipe's epochs where --steps alone ends the run sooner, so that a short run is the
// beginning of a long one. --epochs has it end with the run; so has --lr-schedule, which leaves the recipe's warm-up out, too.
void follow_recipe(const CLI::App& train, TrainCommandOptions&);

// The line that tells all of it as it came to be; `batches` are those of an epoch.
std::string describe_recipe(const TrainCommandOptions&, int64_t batches);

// What the watch over the losses has to know.
WatchedRun watched_run(const TrainCommandOptions&);

// "batch 128, rate 0.3, one-cycle, momentum 0.9, weight decay 0.0005, 10 epochs (runs of 3 and 10 epochs on CIFAR-10)"
std::string describe(const Recipe&);

}  // namespace antichain
