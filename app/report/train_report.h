// A TrainReporter reports on a run of `antichain train` during the run and at its end.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/progress_bar.h"
#include "app/job/preflight.h"
#include "app/report/loss_watch.h"
#include "app/report/measures.h"
#include "app/report/metrics.h"
#include "app/report/output_errors.h"
#include "pipeline/run/time_sheet.h"
#include "pipeline/train/rebalancer.h"
#include "pipeline/train/trainer.h"

namespace antichain {

// It drives the progress bar and the metrics file, on rank 0.
class TrainReporter : public TrainObserver {
 public:
  TrainReporter(MetricsFile&, const DataSet&, const Measures&, const OutputErrors&,
                std::vector<std::string> host_of_rank, LossWatch);
  void on_step(const StepReport&) override;
  void on_evaluation(const EvaluationReport&) override;
  void on_checkpoint(const CheckpointReport&) override;
  void on_end(const std::vector<TimeSheet>&) override;
  void on_rebalance(const RebalanceReport&);
  void finish() { bar_.finish(); }

  const std::optional<EvaluationReport>& last_evaluation() const { return evaluation_; }
  // Those of the last evaluation, if this run made it.
  const std::vector<OutputErrors::Mean>& means() const { return means_; }
  const std::vector<TimeSheet>& times() const { return times_; }  // by rank, at the end
  const std::vector<RebalanceReport>& rebalances() const { return rebalances_; }

 private:
  void warn_above(const std::string& sentence);  // above the bar
  double mean_loss(double newest);               // over the last 20 steps
  MetricsFile& metrics_;
  const DataSet& data_;
  const Measures measures_;
  const OutputErrors& errors_;
  const std::vector<std::string> host_of_rank_;
  std::string note_;
  LossWatch loss_watch_;
  ProgressBar bar_;
  std::deque<double> losses_;      // of the last steps
  std::optional<int64_t> before_;  // steps done by earlier starts
  std::vector<TimeSheet> times_;
  std::vector<RebalanceReport> rebalances_;
  std::optional<EvaluationReport> evaluation_;
  std::vector<OutputErrors::Mean> means_;
};

// Returns the sentence about a move, or about what it has brought.
std::string describe(const RebalanceReport&);

// A TrainSummary is the result of a run, beside what was predicted.
struct TrainSummary {
  std::string model, precision, data, plan_hash, state;
  int64_t test_images = 0, steps = 0, memory_bytes = 0;
  std::vector<MemoryRow> processes;
  int ranks = 1;
  double predicted_step_s = 0, measured_step_s = 0, images_per_s = 0;
  double loss = 0;                 // of the last step
  std::optional<double> accuracy;  // after that step; none where the evaluation was done before
  std::vector<TimeSheet> times;    // by rank
  std::vector<RebalanceReport> rebalances;
  std::optional<EvaluationReport> evaluation;  // the last
  std::vector<OutputErrors::Mean> means;       // of it, where this run made it
  BestEvaluation best;
  std::string ended_early;  // why, or ""
  Measures measures;
  ComputeRate rate;
};
std::string describe(const TrainSummary&);
std::string to_json(const TrainSummary&, int indent);  // −1: in one line

}  // namespace antichain
