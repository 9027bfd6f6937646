// These functions train a model on ranks that are threads and return what it learned, for comparing cuts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/files/weights.h"
#include "pipeline/schedule/schedule.h"
#include "pipeline/train/on_nan.h"
#include "pipeline/train/trainer.h"
#include "pipeline/transport/job_transport.h"

namespace antichain::test {

struct TrainingRun {
  std::vector<double> losses;  // of each step
  std::string state;           // fingerprint of all parameters and buffers
  Weights weights;             // these themselves
  double test_accuracy = -1;
  std::vector<double> epoch_losses;  // of training, by epoch that ended
  int64_t first_step = 0;            // done before, in a run that went on
  std::vector<CheckpointReport> checkpoints;
  std::vector<int64_t> evaluated;  // steps after which it evaluated
  std::vector<double> test_losses;
  BestEvaluation best;
  int64_t steps = 0;        // done in all
  std::string ended_early;  // why
  std::string unsaved;      // why the last one is not there
};

struct TrainingCase {
  std::string model = "every_edge";  // every_edge.h, or that of models/
  int microbatch = 2, microbatches = 4, steps = 5;
  uint64_t seed = 7;
  AugmentOptions augment;
  Precision precision = Precision::float32;
  bool epoch = false;  // train a whole epoch and evaluate instead of `steps`
  OnNan on_nan = OnNan::abort;
  double clip_norm = 0;
  DelayCorrection correction;
  Steps between_ranks = Steps::overlapped;  // where ranks do not agree before an update
  float rate = 0.05f, decay = 1;            // the rate is multiplied by it after each step
  double aux = 0;                           // weight of the auxiliary loss
  int epochs = 0;                           // so many epochs of `steps` steps, each evaluated
  int64_t until = 0;                        // end after so many steps in all
  int64_t evaluate_every = 0;
  int patience = 0;
  bool keep_best = false;
  // The run saves there, and goes on from the newest checkpoint that is there.
  std::string checkpoint;
  int64_t every_steps = 0;
  double every_s = 0;
  int keep = 100;
  std::function<void(const StepReport&)> on_step = [](const StepReport&) {};
  // This carries tensors instead of the job's transport.
  std::function<std::unique_ptr<Transport>(JobTransport& job, const Context&)> over;
  std::string device = "cpu";
  bool device_augments = true;
  double watchdog_s = 120;
  std::shared_ptr<const Optimiser> optimiser = default_optimiser();
  std::vector<std::string> freeze = {};  // patterns of names
  // Makes what moves the run from plan to plan.
  std::function<std::unique_ptr<MoveRule>(const Profile&)> moves = [](const Profile&) { return nullptr; };
};

// Lowers the model, lets `plan` cut it for so many ranks and `schedule` order it, and runs.
using MakePlan = std::function<Plan(const Profile&, int ranks)>;
using MakeSchedule = std::function<Schedule(const Profile&, const Plan&, int microbatches)>;
TrainingRun train_on_threads(const TrainingCase&, int ranks, const MakePlan&, const MakeSchedule&);

// The antichain planner cuts the network, for links of 1 GB/s.
Plan by_antichains(const Profile&, int stages);

// Cuts the network at random places, inside blocks too (random_plan).
MakePlan at_random(unsigned seed);

// Has the stages recompute nodes that are drawn by the seed: with 0 all, else about half of them.
MakePlan recomputing(MakePlan cut, unsigned seed);

// Cuts the network into as many stages as there are numbers, and gives stage i to the rank of the i-th.
MakePlan placed(MakePlan cut, std::vector<int> rank_of_stage);

// Makes a schedule by policy.
MakeSchedule by_policy(Policy);

// Prices a profile by FLOPs and bytes instead of a clock, so it is the same on every machine.
Profile priced_by_flops(Profile);

}  // namespace antichain::test
