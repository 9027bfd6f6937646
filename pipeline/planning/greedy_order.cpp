#include "pipeline/planning/greedy_order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace antichain {
namespace {

constexpr double never_s = std::numeric_limits<double>::infinity();

class GreedyOrder {
 public:
  GreedyOrder(const OrderEstimate& estimate, const InFlightLimits& limits, DispatchingRule rule,
              const std::vector<double>& begins_s)
      : estimate_(estimate),
        limits_(limits),
        rule_(rule),
        stages_(size_t(estimate.stages())),
        ranks_(size_t(estimate.ranks())),
        free_s_(size_t(estimate.links()), 0) {
    for (size_t r = 0; r < begins_s.size(); ++r) ranks_[r].now_s = begins_s[r];
    for (int s = estimate.stages(); s-- > 0;) ranks_[size_t(estimate.rank_of(s))].stages.push_back(s);
    for (size_t r = 0; r < ranks_.size(); ++r)
      for (const int s : ranks_[r].stages)  // each has a buffer, at least
        if (limits.of_each_stage[r])
          stages_[size_t(s)].buffers = 1, ranks_[r].in_flight += limits.takes[size_t(s)];
    for (StageState& s : stages_)
      s.tensors_s.assign(size_t(estimate.microbatches()), 0), s.gradients_s = s.tensors_s;
    wait_for(estimate.tensors(), &StageState::tensors_missing);
    wait_for(estimate.gradients(), &StageState::gradients_missing);
  }

  // Returns nothing where nobody can go on before all is done.
  std::optional<RankOrders> make() {
    for (int left = 3 * estimate_.stages() * estimate_.microbatches(); left > 0; --left) {
      Next best;
      size_t who = 0;
      for (size_t r = 0; r < ranks_.size(); ++r)
        if (const Next next = next_of(r); next.start_s < best.start_s) best = next, who = r;
      if (best.start_s == never_s) return std::nullopt;
      take(ranks_[who], best);
    }
    RankOrders orders;
    for (RankState& r : ranks_) orders.push_back(std::move(r.order));
    return orders;
  }

 private:
  struct StageState {
    int forwards = 0, inputs = 0, weights = 0;
    int buffers = 0;  // that the rank has for micro-batches of this stage, where each stage has its own
    bool has_buffer() const { return forwards - weights < buffers; }
    std::vector<double> tensors_s, gradients_s;           // when the last of each micro-batch has come
    std::vector<int> tensors_missing, gradients_missing;  // messages that were not sent yet
  };
  struct RankState {
    std::vector<int> stages;  // the latest first
    RankOrder order;
    double now_s = 0;
    int64_t in_flight = 0;
  };
  struct Next {
    double start_s = never_s;
    Computing what;
  };

  void wait_for(const std::vector<Transfer>& transfers, std::vector<int> StageState::*missing) {
    for (StageState& s : stages_) (s.*missing).assign(size_t(estimate_.microbatches()), 0);
    for (const Transfer& transfer : transfers)
      for (int& count : stages_[size_t(transfer.to)].*missing) ++count;
  }

  Next next_of(size_t rank) const {
    const RankState& r = ranks_[rank];
    const int M = estimate_.microbatches();
    Next forward, input;
    const auto offer = [&](Next& best, Verb verb, int stage, int m, double there_s) {
      if (const double start_s = std::max(r.now_s, there_s); start_s < best.start_s)
        best = {start_s, {verb, stage, m}};
    };
    // What a micro-batch will take on later stages of the rank has room (or its buffer), so that it can come
    // to its end.
    int64_t room = limits_.most[rank] - r.in_flight;
    for (const int stage : r.stages) {
      const StageState& s = stages_[size_t(stage)];
      const bool fits = s.has_buffer() || room >= limits_.takes[size_t(stage)];
      if (!limits_.of_each_stage[rank]) room -= limits_.takes[size_t(stage)];
      if (s.forwards < M && fits && s.tensors_missing[size_t(s.forwards)] == 0)
        offer(forward, Verb::forward, stage, s.forwards, s.tensors_s[size_t(s.forwards)]);
      if (s.inputs < s.forwards && s.gradients_missing[size_t(s.inputs)] == 0)
        offer(input, Verb::backward_input, stage, s.inputs, s.gradients_s[size_t(s.inputs)]);
    }
    const bool tie_to_input =
        rule_.gradients_first ? input.start_s <= forward.start_s : input.start_s < forward.start_s;
    const Next& first = tie_to_input ? input : forward;
    for (const int stage : r.stages) {
      const StageState& s = stages_[size_t(stage)];
      const double patience_s = rule_.patience * estimate_.times(stage).weight_s;
      if (s.weights < s.inputs && first.start_s > r.now_s + patience_s)
        return {r.now_s, {Verb::backward_weight, stage, s.weights}};
    }
    return first;
  }

  void take(RankState& r, const Next& next) {
    const auto [verb, stage, m] = next.what;
    StageState& s = stages_[size_t(stage)];
    r.order.push_back(next.what);
    r.now_s = next.start_s + estimate_.times(stage).of(verb);
    if (verb == Verb::backward_weight) {
      ++s.weights;
      if (s.buffers == 0) r.in_flight -= limits_.takes[size_t(stage)];
      return;
    }
    const bool forward = verb == Verb::forward;
    if (forward && !s.has_buffer()) {
      r.in_flight += limits_.takes[size_t(stage)];
      if (s.buffers > 0) ++s.buffers;
    }
    ++(forward ? s.forwards : s.inputs);
    for (const Transfer& transfer : forward ? estimate_.tensors() : estimate_.gradients()) {
      if (transfer.from != stage) continue;
      double arrival_s = r.now_s;
      if (transfer.link >= 0) {
        double& free_s = free_s_[size_t(transfer.link)];
        arrival_s = free_s = std::max(free_s, r.now_s) + transfer.seconds;
      }
      StageState& to = stages_[size_t(transfer.to)];
      double& there_s = (forward ? to.tensors_s : to.gradients_s)[size_t(m)];
      there_s = std::max(there_s, arrival_s);
      --(forward ? to.tensors_missing : to.gradients_missing)[size_t(m)];
    }
  }

  const OrderEstimate& estimate_;
  const InFlightLimits& limits_;
  const DispatchingRule rule_;
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
  std::vector<double> free_s_;  // by link
};

}  // namespace

bool InFlightLimits::keep(int rank, const RankOrder& order) const {
  std::vector<int> in_flight(takes.size(), 0), buffers(takes.size(), 0);  // by stage
  int64_t taken = 0;
  for (const Computing& c : order) {
    int &now = in_flight[size_t(c.stage)], &most_of_stage = buffers[size_t(c.stage)];
    const int64_t one = takes[size_t(c.stage)];
    if (c.verb == Verb::forward) {
      ++now;
      if (!of_each_stage[size_t(rank)] || now > most_of_stage) taken += one;
      most_of_stage = std::max(most_of_stage, now);
      if (taken > most[size_t(rank)]) return false;
    } else if (c.verb != Verb::backward_input) {
      --now;
      if (!of_each_stage[size_t(rank)]) taken -= one;
    }
  }
  return true;
}

std::optional<RankOrders> greedy_order(const OrderEstimate& estimate, const InFlightLimits& limits,
                                       DispatchingRule rule, const std::vector<double>& begins_s) {
  return GreedyOrder(estimate, limits, rule, begins_s).make();
}

}  // namespace antichain
