// The trainer runs steps and epochs: it feeds the runner batches and learning rates, evaluates over the whole
// test set through the same pipeline, and tells an observer on rank 0 what happened. An evaluation follows
// each epoch, or every so many steps. In the last checkpoint before an evaluation the evaluation has not
// happened yet. So a run that goes on from there evaluates first, with the same result.
//
// Steps may overlap (steps_under_way.h). The pipeline drains for a checkpoint, an evaluation, a traced step,
// and at the end. Where a schedule has several steps in a row, as many are begun at once as come before the
// next of these, and all of them end before anything else happens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/data_set.h"
#include "partition/plan/steps.h"
#include "pipeline/run/runner.h"
#include "pipeline/run/time_sheet.h"
#include "pipeline/train/move_state.h"
#include "pipeline/train/on_nan.h"
#include "pipeline/train/output_sums.h"
#include "pipeline/train/step_boundary.h"

namespace antichain {

// A Division says how a network is divided among ranks. What it predicts is for ranks of these speeds, which
// are relative to those of the cluster that the run was planned for first.
struct Division {
  Plan plan;
  Schedule schedule;                             // of training
  Facts setting = {};                            // what checkpoints say of it; empty: what they said before
  double pace_s = 0;                             // a step of many
  std::vector<double> busy_s = {}, speeds = {};  // by rank: computing in a step
};

// A StepMeasure says what a step took.
struct StepMeasure {
  int64_t step = 0, left = 0;  // the step that was done, and how many come after it
  double seconds = 0;
  std::vector<double> busy_s;  // by rank: its own computing
};

// A MoveReport says what going over to another division took.
struct MoveReport {
  int64_t step = 0;  // steps done
  Moved moved;
  double pause_s = 0;
};

// A MoveRule says on rank 0 when a run goes over to another division, and to which. The bits do not change.
class MoveRule {
 public:
  virtual ~MoveRule() = default;
  // Sees each step, in order. After it returned a division it returns none until the run has moved.
  virtual std::optional<Division> see(const StepMeasure&) = 0;
  virtual void moved(const MoveReport&) = 0;
  // The ranks have no memory for what `see` returned, so the run stays as it is.
  virtual void refused() = 0;
};

// A DelayCorrection is PipeMare's help for asynchronous training (Yang et al., "PipeMare: Asynchronous
// Pipeline Parallel DNN Training", MLSys 2021): the first steps are synchronous (T3). After them the rate of
// a stage is divided by its delay, and less and less so: by delay^(1 − t / annealing) in the t-th step (T1).
struct DelayCorrection {
  int64_t synchronous_steps = 0;
  int64_t annealing_steps = 0;  // 0: the rate stays as it is

  bool synchronous(int64_t step) const { return step < synchronous_steps; }
  double power(int64_t step) const {
    if (synchronous(step) || annealing_steps == 0) return 0;
    return std::max(0., 1 - double(step - synchronous_steps) / double(annealing_steps));
  }
};

struct TrainOptions {
  int batch = 128;    // samples per step; microbatches × the graph's micro-batch size
  int epochs = 1;     // 0: as many as `steps` asks for
  int64_t steps = 0;  // at most so many steps in all; 0: no limit but `epochs`
  uint64_t seed = 0;
  AugmentOptions augment;                   // of training images
  std::function<float(int64_t step)> rate;  // learning rate
  bool trace = false;                       // record one step after warm-up
  OnNan on_nan = OnNan::abort;
  double clip_norm = 0;  // what the norm of all gradients may be; 0: anything
  DelayCorrection correction;
  // This says whether a rank may begin a step before the others have ended the last one. It may not where
  // ranks agree before an update (agree_before_update).
  Steps between_ranks = Steps::apart;
  OutputSums output_sums;            // of the test set, for the observer
  bool device_augments = true;       // where it has memory of its own: images travel as bytes
  int64_t evaluate_every = 0;        // steps between evaluations; 0: an epoch
  int patience = 0;                  // so many evaluations without a better one end the run; 0: none does
  bool keep_best = false;            // among the checkpoints
  TrainPosition start;               // where to go on; the stage has the state of that moment
  CheckpointOptions checkpoint;      // none are written without a folder
  std::optional<Deadline> deadline;  // stop before, with everything saved
  // On rank 0, or nullptr: the run keeps its plan. It may move between ranks in host memory without replicas,
  // under schedules of one step.
  MoveRule* moves = nullptr;
  // Where runs may move, these are called on every rank: collectively before a move, to say whether the ranks
  // have memory for it, and after it.
  std::function<bool(const Plan&, const Schedule&)> has_room = [](const Plan&, const Schedule&) {
    return true;
  };
  std::function<void(const Plan&, const Schedule&)> on_move = [](const Plan&, const Schedule&) {};
};

struct StepReport {
  int64_t step = 0, total_steps = 0, epoch = 0;
  double loss = 0, accuracy = 0;  // means over the batch; NaN where the loss has no hits
  double rate = 0, seconds = 0, images_per_s = 0;
  std::string skipped_because;  // why the step did not count; "" when it did
  int64_t skipped = 0;          // steps so far that did not
};

// The training figures are means over the steps since the last evaluation. Accuracies are NaN where the loss
// has no hits.
struct EvaluationReport {
  int64_t epoch = 0, step = 0;  // steps done
  bool ends_epoch = true;
  double train_loss = 0, train_accuracy = 0, test_loss = 0, test_accuracy = 0;
  double train_s = 0, test_s = 0;
  std::vector<double> output_sums;  // of TrainOptions, over the test set
};

// It is called on rank 0 only.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepReport&) {}
  virtual void on_evaluation(const EvaluationReport&) {}
  virtual void on_checkpoint(const CheckpointReport&) {}
  // Says by rank where the time went. It is called at the end, also where a signal or the deadline brings it.
  virtual void on_end(const std::vector<TimeSheet>&) {}
};

struct TrainResult {
  int64_t steps = 0;               // done in all
  std::string ended_early;         // why it ended before its last step, or ""; on every rank
  BestEvaluation best;             // on every rank
  LastEvaluation last;             // on rank 0
  double step_s = 0;               // median of the steps after the first; 0 when there was none left to do
  double loss = 0;                 // mean of the last step, on rank 0
  std::optional<double> accuracy;  // of that step, on rank 0; none where no step was left, or no hits
  std::string unsaved;             // why the last checkpoint is not there, or ""; on every rank
  std::string bad_test;            // why the last evaluation's loss is no finite number, or ""; on every rank
  std::vector<Event> events;       // of the traced step, all ranks (on rank 0)
  int64_t memory_bytes = 0;        // tensors of a training step on this rank, besides weights and their state
};

// Collective. It ends by an Error on every rank where a signal or the deadline stops it: ExitCode::stopped
// where all is saved, and 128 + the signal's number where there are no checkpoints. The schedule is that of
// training; the forward-only one for evaluation is made of the same plan.
TrainResult train(RankModel&, const Profile& profile, const Plan&, const Schedule&, const DataSplits&,
                  Transport&, const TrainOptions&, TrainObserver&);

// Returns whether ranks agree before an update, so that it is a vote of the schedule: on what is not finite,
// unless `on_nan` is abort, or on the norm of the gradients.
bool agree_before_update(OnNan, double clip_norm);

// Returns the steps that the options ask for, given the number of whole batches in an epoch.
int64_t total_steps(const TrainOptions&, int64_t batches_per_epoch);

}  // namespace antichain
