// This file computes how long each action of a schedule takes: its stage's nodes added up, on the rank's
// device. The simulator and the rehearsal both take their times from here.
#pragma once

#include <array>
#include <vector>

#include "partition/profile/cluster.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

class ActionSeconds {
 public:
  // Throws Error when the plan names a device that the cluster lacks.
  ActionSeconds(const Plan&, const Profile&, const Cluster&);
  // Gives every stage the mean times of all, which a cut into equal stages would have.
  void make_even();
  // Loads, sends and recvs take 0; a reduce takes 0 where the stage has one rank.
  double operator()(int rank, int stage, Verb verb) const {
    const double s = of_stage_[size_t(stage)][size_t(verb)];
    return verb == Verb::reduce ? s : s / speed_[size_t(rank)];
  }
  double operator()(int rank, const Action& a) const { return (*this)(rank, a.stage, a.verb); }

 private:
  using ByVerb = std::array<double, size_t(Verb::update) + 1>;
  std::vector<ByVerb> of_stage_;  // on a device of speed 1
  std::vector<double> speed_;     // per rank
};

}  // namespace antichain
