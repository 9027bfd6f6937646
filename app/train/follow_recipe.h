// The model's recipe (models/recipe.h) fills in training options that the command line leaves open.
#pragma once

#include <string>

#include "app/report/loss_watch.h"
#include "app/train/train_options.h"
#include "models/recipe.h"

namespace antichain {

// Sets the options of `train` that were not given from the recipe: the batch, the learning rate (in
// proportion to the batch) and its schedule, momentum, weight decay, and without --steps the epochs.
//
// Where --steps alone ends the run sooner, the rate's schedule stays as long as the recipe's epochs. So a
// short run is the beginning of a long one. With --epochs or --lr-schedule the schedule ends with the run;
// --lr-schedule also disables the recipe's warm-up.
void follow_recipe(const CLI::App& train, TrainCommandOptions&);

// Returns the line that reports the chosen options; `batches` is the number of batches in an epoch.
std::string describe_recipe(const TrainCommandOptions&, int64_t batches);

// Returns what the watch over the losses needs to know.
WatchedRun watched_run(const TrainCommandOptions&);

// Returns "batch 128, rate 0.3, one-cycle, momentum 0.9, weight decay 0.0005, 10 epochs (runs of 3 and 10
// epochs on CIFAR-10)".
std::string describe(const Recipe&);

}  // namespace antichain
