// A RankWork is all that a rank makes of one plan and its schedule to train by them: the runners with a
// step's memory, and the samples that its stages load. For another plan it is made again (move_state.h).
#pragma once

#include "pipeline/train/evaluation.h"

namespace antichain {

struct RankWork {
  // The model has the nodes of the plan. `first` is the batch that comes first. Everything referred to must
  // outlive it, but not the profile and the plan.
  RankWork(RankModel& model, const Profile& profile, const Plan& plan, const Schedule& training_schedule,
           const DataSplits& data, Transport& transport, const TrainOptions& options,
           const BatchPosition& first)
      : schedule(training_schedule),
        seat(seats_of(plan, transport.rank(), schedule.microbatches_of_step()).front()),
        training(model, profile, plan, schedule, Mode::train, transport),
        samples(data.train, loading(options, model, seat, true, first)),
        means(model.graph(), model.nodes()),
        evaluation(model, profile, plan, seat, data.test, transport, options) {}

  const Schedule schedule;
  const Seat seat;  // of the rank's first stage; where it has several, all take every micro-batch
  StageRunner training;
  LoaderSource samples;
  const LossMeans means;
  Evaluation evaluation;
};

}  // namespace antichain
