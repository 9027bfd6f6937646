// An OrderEstimate tells how long a step takes when its ranks compute in a given order, and which actions
// decide its length. It gives the simulator's answer up to the last bits, without making the schedule.
// Searches for an order ask it thousands of times about one plan.
//
// A rank may have several stages, but there are no replicas.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/plan/plan.h"
#include "partition/plan/steps.h"
#include "partition/profile/cluster.h"
#include "pipeline/planning/stage_sums.h"
#include "pipeline/schedule/compute_order.h"

namespace antichain {

// A Transfer has all tensors of a micro-batch that one stage sends to another, or their gradients on the way
// back. It takes no time between two stages of a rank.
struct Transfer {
  int from = 0, to = 0;  // stages
  double seconds = 0;
  int link = -1;  // a number for each way from one rank to another; −1 within a rank
  bool operator==(const Transfer&) const = default;
};

// PipelineTimes are a plan as an order sees it.
struct PipelineTimes {
  int microbatches = 1;
  std::vector<int> rank_of;  // by stage; ranks are numbered by their first stages here
  std::vector<StageTimes> stages;
  std::vector<Transfer> tensors, gradients;
  int links = 0;
  bool operator==(const PipelineTimes&) const = default;
};
// Throws Error for a plan with replicas.
PipelineTimes pipeline_times(const Profile&, const Plan&, const Cluster&, int microbatches);
// Stage s is on device[s], whose kind its sum is of, and a rank has all stages of its device.
PipelineTimes pipeline_times(const StageSums&, const Cluster&, const std::vector<int>& device,
                             int microbatches);

// A Computing is an F, B, I or W. A RankOrder has all that one rank computes.
struct Computing {
  Verb verb = Verb::forward;
  int stage = 0, microbatch = 0;
  bool operator==(const Computing&) const = default;
};
using RankOrder = std::vector<Computing>;
using RankOrders = std::vector<RankOrder>;  // by rank, numbered as in PipelineTimes

class OrderEstimate {
 public:
  explicit OrderEstimate(PipelineTimes);
  OrderEstimate(const Profile& profile, const Plan& plan, const Cluster& cluster, int microbatches)
      : OrderEstimate(pipeline_times(profile, plan, cluster, microbatches)) {}
  // Replaces the times by others, for as many stages and micro-batches.
  void set(PipelineTimes);

  // Returns the step's seconds, or infinity where ranks wait for each other in a circle.
  double step_s(const RankOrders&);
  // Returns the same for the period of steps that overlap. It begins on the clocks that the last call has
  // left, because orders that differ little have nearly the same steady state.
  double period_s(const RankOrders&);
  double pace_s(const RankOrders& orders, Steps steps) {
    return steps == Steps::apart ? step_s(orders) : period_s(orders);
  }
  // Returns how many actions were timed so far: the work that budgets are counted in.
  int64_t timed() const { return timed_; }

  // Returns, after step_s, the actions that decide the step's length, from its end to its beginning. Each
  // begins when the next one in this list, or a message of it, ends. After period_s it returns the circle of
  // actions, through one step or several, that decides the period.
  struct At {
    int rank = 0, index = 0;
    bool operator==(const At&) const = default;
  };
  std::vector<At> critical_path() const;
  // Returns when each rank begins a step, after period_s: in the steady state.
  const std::vector<double>& begins_s() const { return now_s_; }

  int stages() const { return int(pipeline_.stages.size()); }
  int ranks() const { return int(update_s_.size()); }
  int links() const { return pipeline_.links; }
  int rank_of(int stage) const { return pipeline_.rank_of[size_t(stage)]; }
  int microbatches() const { return pipeline_.microbatches; }
  const StageTimes& times(int stage) const { return pipeline_.stages[size_t(stage)]; }
  const std::vector<Transfer>& tensors() const { return pipeline_.tensors; }
  const std::vector<Transfer>& gradients() const { return pipeline_.gradients; }
  // Returns which of the tensors a stage sends, or else which of the gradients.
  const std::vector<int>& sent_by(int stage, bool forward) const {
    return (forward ? tensors_out_ : gradients_out_)[size_t(stage)];
  }

 private:
  struct Done {
    double end_s = 0;
    At because;  // what it waited for last; rank −1 for nothing
  };
  static constexpr double not_yet = -1;
  struct Sent {  // of a transfer, for one micro-batch
    double there_s = not_yet;
    At by;
    int waits = -1;  // a rank that goes on when it is sent
  };
  void begin_empty();
  bool play(const RankOrders&);
  void run(int rank, const RankOrder&);

  PipelineTimes pipeline_;
  // These are transfers by stage.
  std::vector<std::vector<int>> tensors_in_, tensors_out_, gradients_in_, gradients_out_;
  std::vector<double> update_s_;  // by rank, of all its stages
  // These are of the last step: per rank and index; per transfer and micro-batch.
  std::vector<std::vector<Done>> done_;
  std::vector<Sent> tensors_sent_, gradients_sent_;
  std::vector<double> free_s_;    // by link: when it is free again
  std::vector<int> next_, able_;  // by rank; ranks that may go on
  std::vector<double> now_s_;
  int last_rank_ = 0;
  bool repeats_ = false;  // whether the last call was for the period
  int64_t timed_ = 0;
};

}  // namespace antichain
