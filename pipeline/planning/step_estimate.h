// A StepEstimate says how long a step takes, from the sums of its stages. It gives the simulator's answer up
// to the last bits, at a small part of the cost. It is for searches, which compare thousands of cuts; what
// they find is then simulated.
//
// All messages of a micro-batch from one stage to another are posted at the same moment, so they are one
// message here. Where a rank has several stages, messages to two of them may be posted in turn; then the
// estimate is close, not equal. Who computes what in which order comes from the policy, whatever its order of
// F, B, I and W; it is asked once, not once a cut.
//
// Most cuts can be ruled out without playing the step through. Each stage has to wait for its first input and
// to do its work; and when its last gradient has gone, that has to reach the first stage:
//
//   step  ≥  start + all its work + its update
//   step  ≥  start + its work but for the weight halves (W) after its last gradient + tail
//
// Where every rank does w forwards and then backwards and forwards in turn (1F1B, and GPipe with w = M), it
// also has to wait for later stages. The forward of j + w follows the backward of j; on a later stage, with v
// in flight, the backward of j follows the forward of j + v − 1. So from one backward of this stage it takes
// a round trip to that stage to the backward w − v + 1 later, if no stage between the two has replicas.
//
// Where a rank has several stages, the step is no shorter than all their work and updates either.
#pragma once

#include <optional>
#include <vector>

#include "partition/profile/cluster.h"
#include "pipeline/planning/stage_sums.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

// Ranks says who is where: the ranks of each stage, and the device of each rank. A stage with replicas has
// several ranks; then each of them has this stage only.
struct Ranks {
  std::vector<std::vector<int>> of_stage;
  std::vector<int> device;
};

class StepEstimate {
 public:
  // There are at least as many micro-batches as any stage has ranks. Throws Error where the policy's orders
  // deadlock when every stage needs the one before it.
  StepEstimate(const Policy&, int microbatches, const Cluster&, const Ranks&, bool sharded = false);

  // Sets the cut that the calls below are about.
  void set(const StageSums&);
  double step_s();
  int actions() const { return int(actions_.size()); }  // what one call of step_s costs
  // Returns the bounds above, per stage: no step is shorter than the largest.
  const std::vector<double>& at_least_s();

 private:
  struct ComputeAction {
    int seat = 0, stage = 0, microbatch = 0;
    Verb verb = Verb::forward;
    size_t cell = 0;                     // of the stage and micro-batch
    std::optional<size_t> partner = {};  // the cell of the backward with which a forward forms a fused pair
  };
  // A SeatEstimate has what a rank does at one of its stages.
  struct SeatEstimate {
    int stage = 0, rank = 0;
    int whole = 0, halved = 0;  // micro-batches by their backwards: B; I and W
    int late_weights = 0;       // W after the last gradient
    int lead = 0;               // forwards before the first backward, where the two then alternate; else 0
    StageTimes times;
    double last_begin_s = 0;  // of its last B or W so far
    Verb last = Verb::backward;
    // Returns its work without waiting, with or without the weight halves after the last gradient.
    double busy_s(bool with_late_weights) const {
      const double all_s = whole * (times.forward_s + times.backward_s) +
                           halved * (times.forward_s + times.input_s + times.weight_s);
      return all_s - (with_late_weights ? 0 : late_weights * times.weight_s);
    }
  };
  struct RankEstimate {
    double speed = 1, now_s = 0;
    std::vector<int> seats;  // ascending by stage
  };
  // The round trips to one later stage: how many there are, and what the stage does before and after them.
  struct RoundTrips {
    int forwards = 0, trips = 0, backwards = 0;
  };
  struct Stage {
    int first_seat = 0, replicas = 1;
    double fastest = 1;
    const Link* reduce_link = nullptr;
    StageTimes times;                        // on the fastest of its devices
    double overhead_s = 0;                   // of an action on a device of speed 1
    double reduce_s = 0, last_reduce_s = 0;  // the latter of the last bucket, which no backward hides
    std::vector<GradientBucket> buckets;
    bool halves = false;  // whether any of its ranks has I and W
    double gradient_s() const { return halves ? times.input_s : times.backward_s; }
    std::vector<RoundTrips> round_trips;  // to itself and the stages after it
    double to_next_s = no_way_s;          // of the messages to the next stage and back
    double start_s = 0, tail_s = 0;       // of at_least_s
  };
  // TransferTimes are those of all messages of a micro-batch from a stage to another.
  struct TransferTimes {
    int stage = 0;  // that gets them
    double within_node_s = 0, between_nodes_s = 0;
    double least_s = 0;  // over the fastest link between the two
  };
  using TransfersByStage = std::vector<std::vector<TransferTimes>>;  // by the stage that sends

  void add_stage(const std::vector<int>& ranks, const std::vector<int>& devices, const Cluster&);
  ComputeOrders orders_of(const Policy&, const std::vector<std::vector<int>>& ranks);
  void list_actions(const ComputeOrders&, const Policy&);
  void list_round_trips();
  inline double lay(TransfersByStage&, int from, int to, int messages, int64_t bytes);
  inline void take(const ComputeAction&);
  double added_up_s(const Stage&) const;
  double finish();
  inline double busy_s(const Stage&, bool late_weights) const;
  double rank_s(const RankEstimate&) const;
  inline double trips_s(size_t stage) const;
  int seat_of(int stage, int microbatch) const {
    return stages_[size_t(stage)].first_seat + microbatch % stages_[size_t(stage)].replicas;
  }
  size_t cell(int stage, int microbatch) const {
    return size_t(stage) * size_t(microbatches_) + size_t(microbatch);
  }
  RankEstimate& rank_of(const SeatEstimate& seat) { return ranks_[size_t(seat.rank)]; }

  static constexpr double no_way_s = -1;

  const int microbatches_;
  const bool sharded_;
  std::vector<Stage> stages_;
  std::vector<SeatEstimate> seats_;  // stage by stage
  std::vector<RankEstimate> ranks_;
  const Link within_node_, between_nodes_;
  std::vector<char> apart_;             // rank x rank: whether they are on different nodes
  std::vector<Link> fastest_link_;      // stage x stage
  std::vector<double> free_s_;          // rank x rank: when the link is free again
  std::vector<ComputeAction> actions_;  // every F, B, I and W, each after all that it can depend on
  TransfersByStage tensors_, gradients_;
  // Per stage and micro-batch: its rank, and when the last of the tensors or gradients has come.
  std::vector<int> rank_at_;
  std::vector<double> tensors_there_s_, gradients_there_s_;
  std::vector<double> at_least_s_;
};

}  // namespace antichain
