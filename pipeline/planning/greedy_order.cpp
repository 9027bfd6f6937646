#include "pipeline/planning/greedy_order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace antichain {
namespace {

constexpr double never_s = std::numeric_limits<double>::infinity();

class GreedyOrder {
 public:
  GreedyOrder(const OrderEstimate& estimate, const std::vector<int>& in_flight, DispatchingRule rule,
              const std::vector<double>& begins_s)
      : estimate_(estimate), in_flight_(in_flight), rule_(rule), stages_(size_t(estimate.stages())) {
    for (size_t s = 0; s < begins_s.size(); ++s) stages_[s].now_s = begins_s[s];
    for (StageState& s : stages_)
      s.tensors_s.assign(size_t(estimate.microbatches()), 0), s.gradients_s = s.tensors_s;
    wait_for(estimate.tensors(), &StageState::tensors_missing);
    wait_for(estimate.gradients(), &StageState::gradients_missing);
  }

  // Returns nothing where nobody can go on before all is done.
  std::optional<RankOrders> make() {
    for (int left = 3 * estimate_.stages() * estimate_.microbatches(); left > 0; --left) {
      Next best;
      for (int s = 0; s < estimate_.stages(); ++s)
        if (const Next next = next_of(s); next.start_s < best.start_s) best = next;
      if (best.start_s == never_s) return std::nullopt;
      take(best);
    }
    RankOrders orders;
    for (StageState& s : stages_) orders.push_back(std::move(s.order));
    return orders;
  }

 private:
  struct StageState {
    RankOrder order;
    double now_s = 0;
    int forwards = 0, inputs = 0, weights = 0;
    std::vector<double> tensors_s, gradients_s;           // when the last of each micro-batch has come
    std::vector<int> tensors_missing, gradients_missing;  // messages that were not sent yet
  };
  struct Next {
    double start_s = never_s;
    int stage = 0;
    Computing what;
  };

  void wait_for(const std::vector<Transfer>& transfers, std::vector<int> StageState::*missing) {
    for (StageState& s : stages_) (s.*missing).assign(size_t(estimate_.microbatches()), 0);
    for (const Transfer& transfer : transfers)
      for (int& count : stages_[size_t(transfer.to)].*missing) ++count;
    free_s_.resize(free_s_.size() + transfers.size(), 0);
  }

  Next next_of(int stage) const {
    const StageState& s = stages_[size_t(stage)];
    const int M = estimate_.microbatches();
    const auto at = [&](Verb verb, int m, double there_s) {
      return Next{std::max(s.now_s, there_s), stage, {verb, m}};
    };
    Next forward, input;
    if (s.forwards < M && s.forwards - s.weights < in_flight_[size_t(stage)] &&
        s.tensors_missing[size_t(s.forwards)] == 0)
      forward = at(Verb::forward, s.forwards, s.tensors_s[size_t(s.forwards)]);
    if (s.inputs < s.forwards && s.gradients_missing[size_t(s.inputs)] == 0)
      input = at(Verb::backward_input, s.inputs, s.gradients_s[size_t(s.inputs)]);
    const bool tie_to_input =
        rule_.gradients_first ? input.start_s <= forward.start_s : input.start_s < forward.start_s;
    const Next& first = tie_to_input ? input : forward;
    const double patience_s = rule_.patience * estimate_.times(stage).weight_s;
    if (s.weights < s.inputs && first.start_s > s.now_s + patience_s)
      return at(Verb::backward_weight, s.weights, s.now_s);
    return first;
  }

  void take(const Next& next) {
    StageState& s = stages_[size_t(next.stage)];
    const auto [verb, m] = next.what;
    s.order.push_back(next.what);
    s.now_s = next.start_s + estimate_.times(next.stage).of(verb);
    if (verb == Verb::backward_weight) {
      ++s.weights;
      return;
    }
    const bool forward = verb == Verb::forward;
    ++(forward ? s.forwards : s.inputs);
    const std::vector<Transfer>& transfers = forward ? estimate_.tensors() : estimate_.gradients();
    for (size_t w = 0; w < transfers.size(); ++w) {
      if (transfers[w].from != next.stage) continue;
      double& free_s = free_s_[w + (forward ? 0 : estimate_.tensors().size())];
      free_s = std::max(free_s, s.now_s) + transfers[w].seconds;
      StageState& to = stages_[size_t(transfers[w].to)];
      double& there_s = (forward ? to.tensors_s : to.gradients_s)[size_t(m)];
      there_s = std::max(there_s, free_s);
      --(forward ? to.tensors_missing : to.gradients_missing)[size_t(m)];
    }
  }

  const OrderEstimate& estimate_;
  const std::vector<int>& in_flight_;
  const DispatchingRule rule_;
  std::vector<StageState> stages_;
  std::vector<double> free_s_;  // links, by transfer
};

}  // namespace

std::optional<RankOrders> greedy_order(const OrderEstimate& estimate, const std::vector<int>& in_flight,
                                       DispatchingRule rule, const std::vector<double>& begins_s) {
  return GreedyOrder(estimate, in_flight, rule, begins_s).make();
}

}  // namespace antichain
