// This file computes how long each action of a schedule takes: its stage's nodes added up, on the rank's
// device. The simulator, the rehearsal and the searches for a step all take their times from here.
#pragma once

#include <array>
#include <vector>

#include "partition/plan/stage_cost.h"
#include "partition/profile/cluster.h"
#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// StageTimes are what the actions of a stage take on one device, in seconds.
struct StageTimes {
  double forward_s = 0, backward_s = 0, input_s = 0, weight_s = 0, update_s = 0;
  double of(Verb verb) const {  // of an action that computes
    if (verb == Verb::forward) return forward_s;
    if (verb == Verb::backward) return backward_s;
    return verb == Verb::backward_input ? input_s : weight_s;
  }
  bool operator==(const StageTimes&) const = default;
};
// The sum is that of the device's kind.
StageTimes stage_times(const StageSum&, double speed);

class ActionSeconds {
 public:
  // Throws Error when the plan names a device that the cluster lacks, or that can't have a node of its stage.
  // The schedule says how many buckets of gradients each stage has; without a schedule it is one.
  ActionSeconds(const Plan&, const Profile&, const Cluster&, const Schedule& = {});
  // Gives every stage the mean times of all, which a cut into equal stages would have.
  void make_even();
  // Loads, sends and recvs take 0. A reduce takes its bucket's time on the link, or 0 where the stage has one
  // rank. Where the plan shards the optimiser, an update takes time on the link, too.
  double operator()(int rank, int stage, Verb verb) const {
    const ByVerb& its = of_stage_[size_t(stage)];
    const UpdateTimes& updates = updates_[size_t(stage)];
    const double speed = speed_[size_t(rank)];
    if (verb == Verb::reduce) return updates.reduce_s;
    if (verb == Verb::update) return updates.update_s(speed, its[size_t(Verb::backward)]);
    return its[size_t(verb)] / speed;
  }
  double operator()(int rank, const Action& a) const {
    const double s = (*this)(rank, a.stage, a.verb);
    return a.bucket >= 0 ? s * bucket(a).share : s;
  }
  // Returns how long after its start the rank's last backward of the stage, `last`, has computed the
  // gradients that the all-reduce `reduce` is for.
  double passed_s(int rank, const Action& last, const Action& reduce) const;

 private:
  using ByVerb = std::array<double, size_t(Verb::update) + 1>;
  const GradientBucket& bucket(const Action& reduce) const {
    return buckets_[size_t(reduce.stage)].at(size_t(reduce.bucket));
  }
  std::vector<ByVerb> of_stage_;                      // what computes, on a device of speed 1
  std::vector<UpdateTimes> updates_;                  // per stage
  std::vector<std::vector<GradientBucket>> buckets_;  // per stage
  std::vector<double> overhead_s_;                    // per stage, on a device of speed 1
  std::vector<double> speed_;                         // per rank
};

// Returns whose times a stage takes on its devices. Throws Error where its replicas do not agree.
const Profile& times_of(const PlanStage&, const Plan&, const Profile& own, const Cluster&);

// Returns how long a rank's vote takes to another rank: the link's latency, because it needs no bandwidth,
// and 0 to itself.
double vote_s(const Plan&, const Cluster&, int from, int to);

}  // namespace antichain
