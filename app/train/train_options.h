// What `antichain train` can be told.
#pragma once

#include <string>
#include <vector>

#include "app/cli/cli_forward.h"
#include "app/obtain/data_options.h"
#include "app/obtain/init_weights.h"
#include "app/options/checkpoint_options.h"
#include "app/options/options.h"
#include "app/options/planning_options.h"
#include "framework/learning_rate.h"
#include "framework/sgd.h"
#include "pipeline/train/trainer.h"

namespace antichain {

struct TrainCommandOptions {
  NetworkOptions network;
  MachineOptions machine;
  PlanningOptions planning;
  ScheduleOptions schedule;
  DataOptions data;
  int epochs = 0;     // 0: as many as `steps` needs
  int64_t steps = 0;  // 0: whole epochs
  uint64_t seed = 0;
  InitOptions init;
  LearningRateOptions rate;
  double warmup_epochs = 0;
  int64_t recipe_warmup_steps = 0;  // or less, where the course is short
  int course_epochs = 0;            // the rate's course is so long where the run is shorter
  SgdOptions sgd;
  bool nesterov = true;
  std::vector<std::string> departures;  // options that were given where the recipe has a value
  std::string on_nan = "abort";
  std::string augment = "auto";  // where: host, device, or the device if it has memory of its own
  std::string settings;          // what was said on the command line: all ranks must have been told the same
  std::string in_force, given;   // the same for --results: with all defaults, as JSON, and as a settings file
  CheckpointCommandOptions checkpoint;
  std::string results, metrics_file, trace_file, json_file;
};

void add_train_options(CLI::App&, TrainCommandOptions&);

// Error on what no single option shows to be wrong.
void check(const TrainCommandOptions&);

// The learning rate's course, given the number of whole batches in an epoch.
struct RateCourse {
  LearningRateOptions options;
  int64_t steps = 0;  // those of the run, or more
};
RateCourse rate_course(const TrainCommandOptions&, int64_t batches_per_epoch);

TrainOptions train_options(const TrainCommandOptions&, int64_t batches_per_epoch);

}  // namespace antichain
