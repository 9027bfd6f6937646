#include "pipeline/planning/step_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

// The forwards before the first backward of an order in which the two alternate from there on, as long as
// there are both; 0 for any other order.
int lead_of(const std::vector<Action>& order) {
  const int count = int(order.size()) / 2;
  const auto first = std::ranges::find(order, Verb::backward, &Action::verb);
  const int lead = int(first - order.begin());
  if (std::any_of(order.begin(), first, [](const Action& a) { return a.verb != Verb::forward; })) return 0;
  for (int i = lead; i < int(order.size()); ++i) {
    const bool forward = (i - lead) % 2 == 1 && lead + (i - lead) / 2 < count;
    if (order[size_t(i)].verb != (forward ? Verb::forward : Verb::backward)) return 0;
  }
  return lead;
}

// Faster than either.
Link best_of(const Link& a, const Link& b) {
  const bool free = a.bytes_per_s == 0 || b.bytes_per_s == 0;
  return {free ? 0 : std::max(a.bytes_per_s, b.bytes_per_s), std::min(a.latency_s, b.latency_s)};
}

}  // namespace

StepEstimate::StepEstimate(const Policy& policy, int microbatches, const Cluster& cluster,
                           const std::vector<std::vector<int>>& crews, double overhead_s)
    : microbatches_(microbatches), overhead_s_(overhead_s), tensors_(crews.size()), gradients_(crews.size()) {
  std::vector<int> devices;
  for (const std::vector<int>& crew : crews) {
    add_ranks(crew, cluster);
    devices.insert(devices.end(), crew.begin(), crew.end());
  }
  for (int a : devices)
    for (int b : devices) links_.push_back(cluster.link(a, b));
  for (const std::vector<int>& from : crews)
    for (const std::vector<int>& to : crews) {
      Link best = cluster.link(from[0], to[0]);
      for (int a : from)
        for (int b : to) best = best_of(best, cluster.link(a, b));
      fastest_link_.push_back(best);
    }
  list_turns(policy);
}

void StepEstimate::add_ranks(const std::vector<int>& crew, const Cluster& cluster) {
  ANTICHAIN_CHECK(int(crew.size()) <= microbatches_, "every replica has a micro-batch");
  Stage stage = {.first_rank = int(ranks_.size()),
                 .replicas = int(crew.size()),
                 .fastest = 0,
                 .reduce_link = &cluster.link(crew)};
  for (int d : crew) {
    ranks_.push_back({.stage = int(stages_.size()), .speed = cluster.device(d).speed});
    stage.fastest = std::max(stage.fastest, ranks_.back().speed);
  }
  stages_.push_back(stage);
}

std::vector<std::vector<Action>> StepEstimate::orders_of(const Policy& policy) {
  std::vector<std::vector<Action>> orders;
  for (Rank& rank : ranks_) {
    Stage& stage = stages_[size_t(rank.stage)];
    orders.push_back(
        policy.compute_order({{rank.stage, int(orders.size()) - stage.first_rank, stage.replicas,
                               int(ranks_.size()), int(ranks_.size()) - stage.first_rank, microbatches_}}));
    for (const Action& a : orders.back()) {
      rank.whole += a.verb == Verb::backward;
      rank.halved += a.verb == Verb::backward_input;
      rank.late_weights = a.verb == Verb::backward_weight ? rank.late_weights + 1 : 0;
    }
    rank.lead = lead_of(orders.back());
    stage.halves = stage.halves || rank.halved > 0;
  }
  return orders;
}

// As if every stage needed the one before: then each turn comes after all that any cut can make it wait for.
void StepEstimate::list_turns(const Policy& policy) {
  const std::vector<std::vector<Action>> orders = orders_of(policy);
  std::vector<size_t> done(orders.size(), 0);
  std::vector<char> forward(stages_.size() * size_t(microbatches_), 0), backward = forward;
  const auto cell = [&](int s, int m) { return size_t(s) * size_t(microbatches_) + size_t(m); };
  const auto ready = [&](const Action& a) {
    if (a.verb == Verb::forward) return a.stage == 0 || forward[cell(a.stage - 1, a.microbatch)];
    if (a.verb == Verb::backward_weight) return true;  // its rank has done the input half before
    return a.stage + 1 == int(stages_.size()) || backward[cell(a.stage + 1, a.microbatch)];
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < orders.size(); ++r)
      for (; done[r] < orders[r].size() && ready(orders[r][done[r]]); ++done[r], moved = true) {
        const Action& a = orders[r][done[r]];
        if (a.verb != Verb::backward_weight)
          (a.verb == Verb::forward ? forward : backward)[cell(a.stage, a.microbatch)] = 1;
        turns_.push_back({int(r), a.stage, a.microbatch, a.verb});
      }
  }
  for (size_t r = 0; r < orders.size(); ++r)
    if (done[r] < orders[r].size())
      throw Error(fmt::format("plans can't be searched for the schedule {}: where every stage needs the one "
                              "before it, rank {} waits forever in {}",
                              policy.name, r, print(orders[r][done[r]])),
                  "choose " + training_policies_in_words());
}

void StepEstimate::lay(std::vector<Wires>& wires, int from, int to, int messages, int64_t bytes) {
  if (messages == 0) return;
  const double least_s = fastest_link_[size_t(from) * stages_.size() + size_t(to)].seconds(bytes, messages);
  wires[size_t(from)].out.push_back({to, messages, bytes, arrivals_, least_s});
  wires[size_t(to)].in.push_back({from, messages, bytes, arrivals_, least_s});
  arrivals_ += size_t(microbatches_);
}

void StepEstimate::set(const StageSums& sums) {
  for (std::vector<Wires>* wires : {&tensors_, &gradients_})
    for (Wires& w : *wires) w.in.clear(), w.out.clear();
  arrivals_ = 0;
  for (const Traffic& t : sums.traffic) {
    lay(tensors_, t.from_stage, t.to_stage, t.tensors, t.tensor_bytes);
    lay(gradients_, t.to_stage, t.from_stage, t.gradients, t.gradient_bytes);
  }
  there_s_.resize(std::max(there_s_.size(), arrivals_));
  for (size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    const StageSum& sum = sums.stages[s];
    stage.forward_s = (sum.forward_s + overhead_s_) / stage.fastest;
    stage.backward_s = (sum.backward_s + overhead_s_) / stage.fastest;
    stage.gradient_s = stage.halves ? (sum.backward_input_s + overhead_s_) / stage.fastest : stage.backward_s;
    stage.update_s = sum.update_s / stage.fastest;
    stage.reduce_s = all_reduce_s(sum.param_bytes, stage.replicas, *stage.reduce_link);
    for (int i = stage.first_rank; i < stage.first_rank + stage.replicas; ++i) {
      Rank& rank = ranks_[size_t(i)];
      rank.forward_s = (sum.forward_s + overhead_s_) / rank.speed;
      rank.backward_s = (sum.backward_s + overhead_s_) / rank.speed;
      rank.input_s = (sum.backward_input_s + overhead_s_) / rank.speed;
      rank.weight_s = (sum.backward_weight_s + overhead_s_) / rank.speed;
    }
  }
}

double StepEstimate::Rank::seconds(Verb verb) const {
  if (verb == Verb::forward) return forward_s;
  if (verb == Verb::backward) return backward_s;
  return verb == Verb::backward_input ? input_s : weight_s;
}

void StepEstimate::take(const Turn& turn) {
  Rank& rank = ranks_[size_t(turn.rank)];
  if (turn.verb == Verb::backward_weight) {  // its gradients came and went with the input half
    rank.now_s += rank.weight_s;
    return;
  }
  const Wires& wires = (turn.verb == Verb::forward ? tensors_ : gradients_)[size_t(turn.stage)];
  double now_s = rank.now_s;
  for (const Wire& wire : wires.in)
    now_s = std::max(now_s, there_s_[wire.arrivals + size_t(turn.microbatch)]);
  now_s += rank.seconds(turn.verb);
  rank.now_s = now_s;
  for (const Wire& wire : wires.out) {
    const size_t pair = size_t(turn.rank) * ranks_.size() + size_t(rank_of(wire.stage, turn.microbatch));
    free_s_[pair] = std::max(free_s_[pair], now_s) + links_[pair].seconds(wire.bytes, wire.messages);
    there_s_[wire.arrivals + size_t(turn.microbatch)] = free_s_[pair];
  }
}

// The all-reduce begins when the stage's last replica has come; then each updates.
double StepEstimate::finish() {
  double last_s = 0;
  for (const Stage& stage : stages_) {
    double met_s = 0, slowest = stage.fastest;
    for (int i = stage.first_rank; i < stage.first_rank + stage.replicas; ++i) {
      met_s = std::max(met_s, ranks_[size_t(i)].now_s);
      slowest = std::min(slowest, ranks_[size_t(i)].speed);
    }
    last_s = std::max(last_s, met_s + stage.reduce_s + stage.update_s * stage.fastest / slowest);
  }
  return last_s;
}

double StepEstimate::step_s() {
  free_s_.assign(ranks_.size() * ranks_.size(), 0);
  for (Rank& rank : ranks_) rank.now_s = 0;
  for (const Turn& turn : turns_) take(turn);
  return finish();
}

// From the first forward's start to the end of the last action, or of the last that sends a gradient, without
// waiting.
double StepEstimate::busy_s(const Stage& stage, bool late_weights) const {
  double longest_s = 0;
  for (int i = stage.first_rank; i < stage.first_rank + stage.replicas; ++i) {
    const Rank& rank = ranks_[size_t(i)];
    const double all_s = rank.whole * (rank.forward_s + rank.backward_s) +
                         rank.halved * (rank.forward_s + rank.input_s + rank.weight_s);
    longest_s = std::max(longest_s, all_s - (late_weights ? 0 : rank.late_weights * rank.weight_s));
  }
  return longest_s;
}

// To the next stage and back, the messages only; negative when not both ways are taken.
double StepEstimate::neighbour_s(size_t s) const {
  for (const Wire& there : tensors_[s].out)
    for (const Wire& back : gradients_[s].in)
      if (there.stage == int(s) + 1 && back.stage == int(s) + 1) return there.least_s + back.least_s;
  return -1;
}

// The same, as round trips to each of the later stages; 0 where the orders do not alternate.
double StepEstimate::trips_s(size_t s) const {
  const Rank& rank = ranks_[size_t(stages_[s].first_rank)];
  const int M = rank.whole, w = rank.lead;
  double longest_s = 0, trip_s = 0;
  for (size_t e = s; e < stages_.size() && stages_[e].replicas == 1; ++e) {
    const int v = ranks_[size_t(stages_[e].first_rank)].lead, advance = w - v + 1;
    if (w == 0 || v == 0 || advance < 1) break;
    trip_s += stages_[e].forward_s + stages_[e].backward_s;
    const int trips = M > w ? (M - 1 - w) / advance + 1 : 0, rest = M - 1 - trips * advance;
    longest_s = std::max(longest_s, (v - 1) * rank.forward_s + (trips + 1) * trip_s + rest * rank.backward_s);
    const double messages_s = neighbour_s(e);
    if (messages_s < 0) break;
    trip_s += messages_s;
  }
  return longest_s;
}

const std::vector<double>& StepEstimate::at_least_s() {
  at_least_s_.resize(stages_.size());
  for (size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    const double update_s = stage.reduce_s + stage.update_s;
    stage.start_s = 0, stage.tail_s = update_s;
    for (const Wire& wire : tensors_[s].in) {
      const Stage& from = stages_[size_t(wire.stage)];
      stage.start_s = std::max(stage.start_s, from.start_s + from.forward_s + wire.least_s);
    }
    for (const Wire& wire : gradients_[s].out) {
      const Stage& to = stages_[size_t(wire.stage)];
      stage.tail_s = std::max(stage.tail_s, wire.least_s + to.gradient_s + to.tail_s);
    }
    at_least_s_[s] = std::max(stage.start_s + std::max(busy_s(stage, false), trips_s(s)) + stage.tail_s,
                              stage.start_s + busy_s(stage, true) + update_s);
  }
  return at_least_s_;
}

}  // namespace antichain
