#include "pipeline/planning/greedy_order.h"

#include <algorithm>
#include <limits>

namespace antichain {
namespace {

constexpr double never_s = std::numeric_limits<double>::infinity();
constexpr double weight_of_mean = 1e-3;

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

DispatchingRule even_rule(const OrderEstimate& estimate, bool gradients_first, double patience) {
  DispatchingRule rule{.forward_turn = {}, .input_turn = {}, .patience = {}};
  for (int later = estimate.stages(); later > 0; --later) {
    rule.forward_turn.push_back(later + (gradients_first ? estimate.stages() : 0));
    rule.input_turn.push_back(later + (gradients_first ? 0 : estimate.stages()));
  }
  rule.patience.assign(size_t(estimate.ranks()), patience);
  return rule;
}

void GreedyOrder::expect(const std::vector<Transfer>& transfers, std::vector<Arrival>& arrivals) const {
  arrivals.assign(stages_.size() * size_t(estimate_->microbatches()), {});
  for (const Transfer& transfer : transfers)
    for (int m = 0; m < estimate_->microbatches(); ++m) ++arrivals[at(transfer.to, m)].missing;
}

void GreedyOrder::begin(const std::vector<double>& begins_s) {
  stages_.assign(size_t(estimate_->stages()), {});
  ranks_.resize(size_t(estimate_->ranks()));
  free_s_.assign(size_t(estimate_->links()), 0);
  for (size_t r = 0; r < ranks_.size(); ++r) {
    RankState& rank = ranks_[r];
    rank.stages.clear(), rank.order.clear();
    rank.now_s = begins_s.empty() ? 0 : begins_s[r];
    rank.update_s = 0, rank.in_flight = 0;
  }
  for (int s = estimate_->stages(); s-- > 0;) {
    const size_t r = size_t(estimate_->rank_of(s));
    ranks_[r].stages.push_back(s);
    ranks_[r].update_s += estimate_->times(s).update_s;
    if (!limits_->of_each_stage[r]) continue;
    stages_[size_t(s)].buffers = 1;  // each has one, at least
    ranks_[r].in_flight += limits_->takes[size_t(s)];
  }
  expect(estimate_->tensors(), tensors_);
  expect(estimate_->gradients(), gradients_);
}

bool GreedyOrder::play(const OrderEstimate& estimate, const InFlightLimits& limits,
                       const DispatchingRule& rule, const std::vector<double>& begins_s) {
  estimate_ = &estimate, limits_ = &limits, rule_ = &rule;
  begin(begins_s);
  for (size_t r = 0; r < ranks_.size(); ++r) find_next(r);
  for (int left = 3 * estimate.stages() * estimate.microbatches(); left > 0; --left) {
    size_t who = 0;
    for (size_t r = 1; r < ranks_.size(); ++r)
      if (ranks_[r].next.start_s < ranks_[who].next.start_s) who = r;
    if (ranks_[who].next.start_s == never_s) return false;
    take(who);
  }
  return true;
}

void GreedyOrder::find_next(size_t rank) {
  RankState& r = ranks_[rank];
  const int M = estimate_->microbatches();
  r.next = {.start_s = never_s};
  const auto offer = [&](Verb verb, int stage, int turn, const Arrival& arrival) {
    if (arrival.missing > 0) return;
    const double start_s = std::max(r.now_s, arrival.there_s);
    if (start_s < r.next.start_s || (start_s == r.next.start_s && turn < r.next.turn))
      r.next = {start_s, turn, verb, stage};
  };
  // What a micro-batch will take on later stages of the rank has room (or its buffer), so that it can come to
  // its end.
  int64_t room = limits_->most[rank] - r.in_flight;
  for (const int stage : r.stages) {
    const StageState& s = stages_[size_t(stage)];
    const bool fits = s.has_buffer() || room >= limits_->takes[size_t(stage)];
    if (!limits_->of_each_stage[rank]) room -= limits_->takes[size_t(stage)];
    if (s.forwards < M && fits)
      offer(Verb::forward, stage, rule_->forward_turn[size_t(stage)], tensors_[at(stage, s.forwards)]);
    if (s.inputs < s.forwards)
      offer(Verb::backward_input, stage, rule_->input_turn[size_t(stage)], gradients_[at(stage, s.inputs)]);
  }
  for (const int stage : r.stages) {
    const StageState& s = stages_[size_t(stage)];
    const double patience_s = rule_->patience[rank] * estimate_->times(stage).weight_s;
    if (s.weights < s.inputs && r.next.start_s > r.now_s + patience_s) {
      r.next = {r.now_s, 0, Verb::backward_weight, stage};
      return;
    }
  }
}

void GreedyOrder::take(size_t rank) {
  RankState& r = ranks_[rank];
  const auto [start_s, turn, verb, stage] = r.next;
  StageState& s = stages_[size_t(stage)];
  const bool forward = verb == Verb::forward;
  if (r.order.empty()) r.begin_s = start_s;
  const int m = forward ? s.forwards : verb == Verb::backward_input ? s.inputs : s.weights;
  r.order.push_back({verb, stage, m});
  r.now_s = start_s + estimate_->times(stage).of(verb);
  if (verb == Verb::backward_weight) {
    ++s.weights;
    if (s.buffers == 0) r.in_flight -= limits_->takes[size_t(stage)];
    return find_next(rank);
  }
  if (forward && !s.has_buffer()) {
    r.in_flight += limits_->takes[size_t(stage)];
    if (s.buffers > 0) ++s.buffers;
  }
  ++(forward ? s.forwards : s.inputs);
  for (const int i : estimate_->sent_by(stage, forward)) {
    const Transfer& transfer = (forward ? estimate_->tensors() : estimate_->gradients())[size_t(i)];
    double arrival_s = r.now_s;
    if (transfer.link >= 0) {
      double& free_s = free_s_[size_t(transfer.link)];
      arrival_s = free_s = std::max(free_s, r.now_s) + transfer.seconds;
    }
    Arrival& arrival = (forward ? tensors_ : gradients_)[at(transfer.to, m)];
    arrival.there_s = std::max(arrival.there_s, arrival_s);
    if (--arrival.missing == 0) find_next(size_t(estimate_->rank_of(transfer.to)));
  }
  find_next(rank);
}

RankOrders GreedyOrder::orders() const {
  RankOrders orders;
  for (const RankState& r : ranks_) orders.push_back(r.order);
  return orders;
}

double GreedyOrder::seconds(Steps steps) const {
  double most_s = 0, sum_s = 0;
  for (const RankState& r : ranks_) {
    const double s = r.now_s + r.update_s - (steps == Steps::apart ? 0 : r.begin_s);
    most_s = std::max(most_s, s), sum_s += s;
  }
  return most_s + weight_of_mean * sum_s / double(ranks_.size());
}

}  // namespace antichain
