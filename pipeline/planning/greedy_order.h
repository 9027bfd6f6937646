// A greedy order comes from playing a step through: the rank that can begin earliest comes next, and a
// dispatching rule chooses its action (Panwalkar and Iskander, "A Survey of Scheduling Rules", Operations
// Research 1977). Searches start from such orders, and compare cuts by them.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/plan/steps.h"
#include "pipeline/planning/order_estimate.h"

namespace antichain {

// What ranks may have in flight: each micro-batch of a stage takes `takes`, and a rank has room for `most`.
struct InFlightLimits {
  std::vector<int64_t> takes;  // by stage
  std::vector<int64_t> most;   // by rank, numbered as in PipelineTimes
  // By rank: whether the most of each stage counts, because stages have buffers of their own, or else the
  // most at once.
  std::vector<bool> of_each_stage;
  // Says whether the rank keeps its limit, from the beginning of F to the end of W.
  bool keep(int rank, const RankOrder&) const;
};

struct DispatchingRule {
  // By stage. Of what can begin at once on a rank, that with the smallest number does.
  std::vector<int> forward_turn, input_turn;
  // By rank: it waits for what comes within so many lengths of a weight half.
  std::vector<double> patience;
};
// Returns the rule that has the same patience everywhere. Input halves come before forwards, or the reverse,
// and of several stages of a rank the latest comes first.
DispatchingRule even_rule(const OrderEstimate&, bool gradients_first, double patience);

class GreedyOrder {
 public:
  // Plays a step that keeps the limits. Ranks begin at the given times; {} means that all begin at 0. Returns
  // false where all ranks get stuck before the step is done.
  bool play(const OrderEstimate&, const InFlightLimits&, const DispatchingRule&,
            const std::vector<double>& begins_s = {});

  // These are of the last step that was played to its end.
  RankOrders orders() const;
  // Returns the step's seconds, or, where steps overlap, the longest span of a rank, from its first forward
  // to its update. The mean over ranks counts a thousandth.
  double seconds(Steps) const;

 private:
  struct StageState {
    int forwards = 0, inputs = 0, weights = 0;
    int buffers = 0;  // that the rank has for micro-batches of this stage, where each stage has its own
    bool has_buffer() const { return forwards - weights < buffers; }
  };
  struct Next {
    double start_s = 0;
    int turn = 0;
    Verb verb = Verb::forward;
    int stage = -1;
  };
  struct RankState {
    std::vector<int> stages;  // the latest first
    RankOrder order;
    double now_s = 0, begin_s = 0, update_s = 0;
    int64_t in_flight = 0;
    Next next;
  };
  // What has come of each micro-batch of a stage.
  struct Arrival {
    double there_s = 0;  // when the last message has
    int missing = 0;     // messages that were not sent yet
  };

  void begin(const std::vector<double>& begins_s);
  void expect(const std::vector<Transfer>&, std::vector<Arrival>&) const;
  void find_next(size_t rank);
  void take(size_t rank);
  size_t at(int stage, int microbatch) const {
    return size_t(stage * estimate_->microbatches() + microbatch);
  }

  const OrderEstimate* estimate_ = nullptr;  // these are the last call's
  const InFlightLimits* limits_ = nullptr;
  const DispatchingRule* rule_ = nullptr;
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
  std::vector<Arrival> tensors_, gradients_;  // by stage and micro-batch
  std::vector<double> free_s_;                // by link
};

}  // namespace antichain
