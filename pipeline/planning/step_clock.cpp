#include "pipeline/planning/step_clock.h"

#include <algorithm>

#include "framework/error.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

double seconds(const Link& link, int messages, int64_t bytes) {
  return messages * link.latency_s + (link.bytes_per_s > 0 ? double(bytes) / link.bytes_per_s : 0);
}

// Faster than either.
Link best_of(const Link& a, const Link& b) {
  const bool free = a.bytes_per_s == 0 || b.bytes_per_s == 0;
  return {free ? 0 : std::max(a.bytes_per_s, b.bytes_per_s), std::min(a.latency_s, b.latency_s)};
}

}  // namespace

StepClock::StepClock(Policy policy, int microbatches, const Cluster& cluster,
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

void StepClock::add_ranks(const std::vector<int>& crew, const Cluster& cluster) {
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

// As if every stage needed the one before: then each turn comes after all that any cut can make it wait for.
void StepClock::list_turns(Policy policy) {
  std::vector<std::vector<Action>> orders;
  for (Rank& rank : ranks_) {
    const Stage& stage = stages_[size_t(rank.stage)];
    orders.push_back(compute_order(policy, {rank.stage, int(orders.size()) - stage.first_rank, stage.replicas,
                                            int(ranks_.size()) - stage.first_rank, microbatches_}));
    const std::vector<Action>& order = orders.back();
    rank.microbatches = int(order.size()) / 2;
    rank.in_flight = int(
        std::find_if(order.begin(), order.end(), [](const Action& a) { return a.verb == Verb::backward; }) -
        order.begin());
  }
  std::vector<size_t> done(orders.size(), 0);
  std::vector<char> forward(stages_.size() * size_t(microbatches_), 0), backward = forward;
  const auto cell = [&](int s, int m) { return size_t(s) * size_t(microbatches_) + size_t(m); };
  const auto ready = [&](const Action& a) {
    return a.verb == Verb::forward
               ? a.stage == 0 || forward[cell(a.stage - 1, a.microbatch)]
               : a.stage + 1 == int(stages_.size()) || backward[cell(a.stage + 1, a.microbatch)];
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < orders.size(); ++r)
      for (; done[r] < orders[r].size() && ready(orders[r][done[r]]); ++done[r], moved = true) {
        const Action& a = orders[r][done[r]];
        (a.verb == Verb::forward ? forward : backward)[cell(a.stage, a.microbatch)] = 1;
        turns_.push_back({int(r), a.stage, a.microbatch, a.verb == Verb::forward});
      }
  }
  for (size_t r = 0; r < orders.size(); ++r)
    ANTICHAIN_CHECK(done[r] == orders[r].size(), "the order has no deadlock");
}

void StepClock::lay(std::vector<Wires>& wires, int from, int to, int messages, int64_t bytes) {
  if (messages == 0) return;
  const double least_s = seconds(fastest_link_[size_t(from) * stages_.size() + size_t(to)], messages, bytes);
  wires[size_t(from)].out.push_back({to, messages, bytes, arrivals_, least_s});
  wires[size_t(to)].in.push_back({from, messages, bytes, arrivals_, least_s});
  arrivals_ += size_t(microbatches_);
}

void StepClock::set(const StageSums& sums) {
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
    stage.update_s = sum.update_s / stage.fastest;
    const double r = stage.replicas, rate = stage.reduce_link->bytes_per_s;
    stage.reduce_s = r > 1 && rate > 0 ? 2 * (r - 1) / r * double(sum.param_bytes) / rate : 0;
    for (int i = stage.first_rank; i < stage.first_rank + stage.replicas; ++i) {
      Rank& rank = ranks_[size_t(i)];
      rank.forward_s = (sum.forward_s + overhead_s_) / rank.speed;
      rank.backward_s = (sum.backward_s + overhead_s_) / rank.speed;
    }
  }
}

void StepClock::take(const Turn& turn) {
  Rank& rank = ranks_[size_t(turn.rank)];
  const Wires& wires = (turn.forward ? tensors_ : gradients_)[size_t(turn.stage)];
  double now_s = rank.now_s;
  for (const Wire& wire : wires.in)
    now_s = std::max(now_s, there_s_[wire.arrivals + size_t(turn.microbatch)]);
  now_s += turn.forward ? rank.forward_s : rank.backward_s;
  rank.now_s = now_s;
  for (const Wire& wire : wires.out) {
    const size_t pair = size_t(turn.rank) * ranks_.size() + size_t(rank_of(wire.stage, turn.microbatch));
    free_s_[pair] = std::max(free_s_[pair], now_s) + seconds(links_[pair], wire.messages, wire.bytes);
    there_s_[wire.arrivals + size_t(turn.microbatch)] = free_s_[pair];
  }
}

// The all-reduce begins when the stage's last replica has come; then each updates.
double StepClock::finish() {
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

double StepClock::step_s() {
  free_s_.assign(ranks_.size() * ranks_.size(), 0);
  for (Rank& rank : ranks_) rank.now_s = 0;
  for (const Turn& turn : turns_) take(turn);
  return finish();
}

// From the first forward's start to the last backward's end, without waiting.
double StepClock::busy_s(const Stage& stage) const {
  double longest_s = 0;
  for (int i = stage.first_rank; i < stage.first_rank + stage.replicas; ++i)
    longest_s = std::max(longest_s, ranks_[size_t(i)].microbatches *
                                        (ranks_[size_t(i)].forward_s + ranks_[size_t(i)].backward_s));
  return longest_s;
}

// To the next stage and back, the messages only; negative when not both ways are taken.
double StepClock::neighbour_s(size_t s) const {
  for (const Wire& there : tensors_[s].out)
    for (const Wire& back : gradients_[s].in)
      if (there.stage == int(s) + 1 && back.stage == int(s) + 1) return there.least_s + back.least_s;
  return -1;
}

// The same, as round trips to each of the later stages.
double StepClock::trips_s(size_t s) const {
  const Rank& rank = ranks_[size_t(stages_[s].first_rank)];
  const int M = rank.microbatches, w = rank.in_flight;
  double longest_s = 0, trip_s = 0;
  for (size_t e = s; e < stages_.size() && stages_[e].replicas == 1; ++e) {
    const int v = ranks_[size_t(stages_[e].first_rank)].in_flight, advance = w - v + 1;
    trip_s += stages_[e].forward_s + stages_[e].backward_s;
    const int trips = M > w ? (M - 1 - w) / advance + 1 : 0, rest = M - 1 - trips * advance;
    longest_s = std::max(longest_s, (v - 1) * rank.forward_s + (trips + 1) * trip_s + rest * rank.backward_s);
    const double messages_s = neighbour_s(e);
    if (messages_s < 0) break;
    trip_s += messages_s;
  }
  return longest_s;
}

const std::vector<double>& StepClock::at_least_s() {
  at_least_s_.resize(stages_.size());
  for (size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    stage.start_s = 0, stage.tail_s = stage.reduce_s + stage.update_s;
    for (const Wire& wire : tensors_[s].in) {
      const Stage& from = stages_[size_t(wire.stage)];
      stage.start_s = std::max(stage.start_s, from.start_s + from.forward_s + wire.least_s);
    }
    for (const Wire& wire : gradients_[s].out) {
      const Stage& to = stages_[size_t(wire.stage)];
      stage.tail_s = std::max(stage.tail_s, wire.least_s + to.backward_s + to.tail_s);
    }
    at_least_s_[s] = stage.start_s + std::max(busy_s(stage), trips_s(s)) + stage.tail_s;
  }
  return at_least_s_;
}

}  // namespace antichain
