// How long a step takes, from the sums of its stages: the simulator's answer but for the last bits, at a
// small part of its price. For searches, which compare thousands of cuts; what they find is then simulated.
//
// All messages of a micro-batch from one stage to another are posted at the same moment, so they are one
// message here. Who computes what in which order comes from the schedule's own first pass; it is asked for
// once, not once a cut.
//
// Most cuts can be ruled out without playing the step through. Each stage has to wait for its first input, to
// do its n forwards and backwards, and then the last gradient has to reach the first stage:
//
//   step  ≥  start + n (forward + backward) + tail
//
// It also has to wait for later stages. With w micro-batches in flight, the forward of j + w follows the
// backward of j; on a later stage, with v in flight, the backward of j follows the forward of j + v − 1. So
// from one backward of this stage it takes a round trip to that stage to the backward w − v + 1 later. (Where
// no stage between the two has replicas.)
#pragma once

#include <vector>

#include "partition/profile/cluster.h"
#include "pipeline/planning/stage_sums.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

class StepClock {
 public:
  // `crews`: the devices of each stage, in the order of its ranks; ranks are numbered stage by stage.
  // `overhead_s` is the profile's. At least as many micro-batches as any crew has devices.
  StepClock(Policy, int microbatches, const Cluster&, const std::vector<std::vector<int>>& crews,
            double overhead_s);

  // What the calls below are about.
  void set(const StageSums&);
  double step_s();
  int actions() const { return int(turns_.size()); }  // what one call of step_s costs
  // Per stage, as above: no step is shorter than the largest.
  const std::vector<double>& at_least_s();

 private:
  struct Turn {
    int rank = 0, stage = 0, microbatch = 0;
    bool forward = true;
  };
  struct Rank {
    int stage = 0;
    double speed = 1;
    int microbatches = 0, in_flight = 0;
    double forward_s = 0, backward_s = 0, now_s = 0;
  };
  struct Stage {
    int first_rank = 0, replicas = 1;
    double fastest = 1;
    const Link* reduce_link = nullptr;
    double forward_s = 0, backward_s = 0, reduce_s = 0, update_s = 0;  // on the fastest; reduce: on any
    double start_s = 0, tail_s = 0;                                    // of at_least_s
  };
  struct Wire {  // from a stage to another
    int stage = 0, messages = 0;
    int64_t bytes = 0;
    size_t arrivals = 0;  // into there_s_, per micro-batch
    double least_s = 0;   // over the fastest link between the two
  };
  struct Wires {
    std::vector<Wire> in, out;
  };

  void add_ranks(const std::vector<int>& crew, const Cluster&);
  void list_turns(Policy);
  void lay(std::vector<Wires>&, int from, int to, int messages, int64_t bytes);
  void take(const Turn&);
  double finish();
  double busy_s(const Stage&) const;
  double trips_s(size_t stage) const;
  double neighbour_s(size_t stage) const;
  int rank_of(int stage, int microbatch) const {
    return stages_[size_t(stage)].first_rank + microbatch % stages_[size_t(stage)].replicas;
  }

  const int microbatches_;
  const double overhead_s_;
  std::vector<Stage> stages_;
  std::vector<Rank> ranks_;
  std::vector<Link> links_;         // rank x rank
  std::vector<Link> fastest_link_;  // stage x stage
  std::vector<double> free_s_;      // rank x rank: when the link is free again
  std::vector<Turn> turns_;         // every forward and backward, each after all that it can depend on
  std::vector<Wires> tensors_, gradients_;  // per stage
  size_t arrivals_ = 0;
  std::vector<double> there_s_;
  std::vector<double> at_least_s_;
};

}  // namespace antichain
