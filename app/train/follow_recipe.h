// The model's recipe (models/recipe.h) fills what the command line leaves open about a training.
#pragma once

#include <string>

#include "app/report/loss_watch.h"
#include "app/train/train_options.h"
#include "models/recipe.h"

namespace antichain {

// Options of `train` that were not given become the recipe's: the batch, the rate (in proportion to the
// batch) and its course, momentum, weight decay, and without --steps the epochs.
//
// Where --steps alone ends the run sooner, the rate's course stays as long as the recipe's epochs, so that a
// short run is the beginning of a long one. With --epochs or --lr-schedule the course ends with the run;
// --lr-schedule also leaves the recipe's warm-up out.
void follow_recipe(const CLI::App& train, TrainCommandOptions&);

// Returns the line that tells what the options came to; `batches` is the number of batches in an epoch.
std::string describe_recipe(const TrainCommandOptions&, int64_t batches);

// Returns what the watch over the losses has to know.
WatchedRun watched_run(const TrainCommandOptions&);

// "batch 128, rate 0.3, one-cycle, momentum 0.9, weight decay 0.0005, 10 epochs (runs of 3 and 10 epochs on
// CIFAR-10)"
std::string describe(const Recipe&);

}  // namespace antichain
