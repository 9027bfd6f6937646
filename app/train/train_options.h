// TrainCommandOptions are the options of `antichain train`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/cli_forward.h"
#include "app/obtain/augment_options.h"
#include "app/obtain/data_options.h"
#include "app/obtain/init_weights.h"
#include "app/options/checkpoint_options.h"
#include "app/options/options.h"
#include "app/options/planning_options.h"
#include "app/train/evaluation_options.h"
#include "app/train/optimiser_options.h"
#include "framework/learning_rate.h"
#include "pipeline/train/trainer.h"

namespace antichain {

inline constexpr int64_t most_training_steps = 1'000'000'000;
inline constexpr int most_epochs = 1'000'000;

struct TrainCommandOptions {
  NetworkOptions network;
  MachineOptions machine;
  PlanningOptions planning;
  ScheduleOptions schedule;
  int emulate_delays = 0;                 // of a pipeline of so many stages; 0: of the ranks there are
  std::string delay_correction = "none";  // or pipemare
  int64_t synchronous_steps = 0, annealing_steps = 0;  // 0 of the latter: a quarter of the rate's course
  DataOptions data;
  AugmentOptions augmentation;
  int epochs = 0;     // 0: as many as `steps` needs
  int64_t steps = 0;  // 0: train whole epochs
  uint64_t seed = 0;
  InitOptions init;
  LearningRateOptions rate;
  double warmup_epochs = 0;
  int64_t recipe_warmup_steps = 0;  // fewer where the schedule is short
  int course_epochs = 0;            // length of the rate's schedule where --steps ends the run before
  OptimiserOptions optimiser;
  std::vector<std::string> departures;  // given options that the recipe also has values for
  EvaluationOptions evaluation;
  std::string on_nan = "abort";
  std::string rebalance = "auto";  // or off
  bool rebalance_given = false;
  std::string augment = "auto";  // where: host, device, or the device if it has memory of its own
  std::string settings;          // the command line's settings, which must be equal on all ranks
  std::string in_force, given;   // for --results: with all defaults, as JSON, and as a settings file
  CheckpointCommandOptions checkpoint;
  std::vector<OptionRow> rows;  // of the command, with what each option changes
  std::string results, metrics_file, trace_file, json_file;
};

void add_train_options(CLI::App&, TrainCommandOptions&);
// Throws Error where an option has no row, or its row does not say what it changes, so that none that changes
// numbers can be forgotten.
void check_every_option_says_what_it_changes(const CLI::App& train);

// Throws Error for mistakes that involve several options.
void check(const TrainCommandOptions&);

// Throws Error for what a schedule of older weights can't have: steps that may be left out and, on several
// ranks, gradients that are clipped, because no rank waits for the others before it updates.
void check_older_weights(const TrainCommandOptions&, int ranks);

// Returns the policy that --schedule names, where it is asynchronous, else nullptr.
const Policy* asynchronous_policy(const TrainCommandOptions&);

// Returns the option for which all ranks agree before any of them updates: "--clip-norm 1"; or "".
std::string why_ranks_agree(const TrainCommandOptions&);

// Returns the learning rate's schedule, whose steps are those of the run or more.
LearningRate rate_course(const TrainCommandOptions&, int64_t batches_per_epoch);

TrainOptions train_options(const TrainCommandOptions&, int64_t batches_per_epoch);

}  // namespace antichain
