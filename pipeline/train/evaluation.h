// An Evaluation runs the whole test set through the pipeline of one plan. The averages of the weights are
// used, where there are any.
#pragma once

#include <functional>
#include <vector>

#include "pipeline/run/loss_means.h"
#include "pipeline/train/loader_source.h"
#include "pipeline/train/trainer.h"

namespace antichain {

class Evaluation {
 public:
  // Everything referred to must outlive it, but not the profile and the plan.
  Evaluation(RankModel&, const Profile&, const Plan&, const Seat& first, std::shared_ptr<const DataSet>,
             Transport&, const TrainOptions&);

  // Takes every sample once; the last batch is padded with samples that count nothing. It ends early where
  // `goes_on`, which it asks after each batch, says no. Returns this rank's sums.
  StepResult run(const std::function<bool()>& goes_on);
  // Collective. Returns what TrainOptions::output_sums has added up in the last run, in rank order, on rank
  // 0; it is empty elsewhere.
  std::vector<double> output_sums() const;

 private:
  const LossMeans::Counts& counts();
  void add_up_outputs();

  RankModel& model_;
  Transport& transport_;
  const TrainOptions& options_;
  const Seat seat_;
  const Schedule schedule_;
  StageRunner runner_;
  LoaderSource samples_;
  const int64_t size_;
  const LossMeans means_;
  LossMeans::Counts counts_;         // of all of the test set, once it was counted
  std::vector<double> output_sums_;  // of this rank
};

}  // namespace antichain
