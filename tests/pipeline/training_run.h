// Trains a model on ranks that are threads and returns what it learned, for comparing cuts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pipeline/schedule.h"

namespace antichain::testing {

struct TrainingRun {
  std::vector<double> losses;  // of each step
  std::string state;           // fingerprint of all parameters and buffers
  double test_accuracy = -1;
};

struct TrainingCase {
  std::string model;
  int microbatch = 2, microbatches = 4, steps = 5;
  uint64_t seed = 7;
  bool epoch = false;  // train a whole epoch and evaluate instead of `steps`
};

// Lowers the model, lets `plan` cut it into `stages` and `schedule` order it, and runs.
using MakePlan = std::function<Plan(const Profile&, int stages)>;
using MakeSchedule = std::function<Schedule(const Profile&, const Plan&, int microbatches)>;
TrainingRun train_on_threads(const TrainingCase&, int stages, const MakePlan&, const MakeSchedule&);

// A schedule by policy.
MakeSchedule by_policy(Policy);

// A profile priced by FLOPs and bytes instead of a clock: the same on every machine.
Profile priced_by_flops(Profile);

}  // namespace antichain::testing
