// A Bench runs steps of the whole model on one rank, as the ranks of a job run their stages, so that they can
// be timed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "partition/plan/plan.h"
#include "partition/profile/profile.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/schedule.h"
#include "pipeline/transport/solo_transport.h"

namespace antichain {

// Returns the schedule of a step in which a backward is one action.
Schedule whole_backwards(const Profile&, const Plan& one_stage, int microbatches);

// Returns the schedule of a step in which a backward is two actions. All forwards come first, then all input
// halves, then all weight halves. Schedules that part backwards put weight halves off, so that caches no
// longer hold what a weight half reads.
Schedule parted_backwards(const Profile&, const Plan& one_stage, int microbatches);

// A RandomSource gives random images and labels 0, drawn once. Their values do not change the times unless
// they are denormal, and a real run does not draw them.
class RandomSource : public BatchSource {
 public:
  void fill(std::string_view input, int microbatch, const Tensor& out) override;
  // As in training, a device copies the next step's samples during this one.
  bool expects_more() const override { return true; }
  void fill_next(std::string_view input, int microbatch, const Tensor& out) override {
    fill(input, microbatch, out);
  }
  bool is_expected() const override { return true; }

 private:
  std::map<std::string, Tensor> drawn_;
};

class Bench {
 public:
  // Model, profile and plan must outlive the bench.
  Bench(RankModel& model, const Profile& profile, const Plan& plan, Schedule schedule)
      : model_(model),
        schedule_(std::move(schedule)),
        runner_(model_, profile, plan, schedule_, Mode::train, alone_) {}

  StageRunner& runner() { return runner_; }
  int microbatches() const { return schedule_.microbatches; }

  struct Step {
    double seconds = 0;
    std::vector<Event> events;
  };
  // Runs a step on random images, with a learning rate of 0. It has events only where it is traced.
  Step step(bool traced = false);

 private:
  RankModel& model_;
  Schedule schedule_;
  SoloTransport alone_;
  StageRunner runner_;
  RandomSource source_;
};

}  // namespace antichain
