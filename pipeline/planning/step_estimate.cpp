#include "pipeline/planning/step_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

// Returns the forwards before the first backward of an order in which the two alternate from there on, as
// long as there are both. Returns 0 for any other order.
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

// Returns a link that is faster than either.
Link best_of(const Link& a, const Link& b) {
  const bool free = a.bytes_per_s == 0 || b.bytes_per_s == 0;
  return {free ? 0 : std::max(a.bytes_per_s, b.bytes_per_s), std::min(a.latency_s, b.latency_s)};
}

}  // namespace

StepEstimate::StepEstimate(const Policy& policy, int microbatches, const Cluster& cluster, const Ranks& ranks,
                           bool sharded)
    : microbatches_(microbatches),
      sharded_(sharded),
      ranks_(ranks.device.size()),
      within_node_(cluster.within_node),
      between_nodes_(cluster.between_nodes),
      tensors_(ranks.of_stage.size()),
      gradients_(ranks.of_stage.size()) {
  for (size_t r = 0; r < ranks_.size(); ++r) ranks_[r].speed = cluster.device(ranks.device[r]).speed;
  for (int a : ranks.device)
    for (int b : ranks.device) apart_.push_back(&cluster.link(a, b) == &cluster.between_nodes);
  for (const std::vector<int>& of_stage : ranks.of_stage) add_stage(of_stage, ranks.device, cluster);
  for (const std::vector<int>& from : ranks.of_stage)
    for (const std::vector<int>& to : ranks.of_stage) {
      const auto link = [&](int a, int b) {
        return cluster.link(ranks.device[size_t(a)], ranks.device[size_t(b)]);
      };
      Link best = link(from[0], to[0]);
      for (int a : from)
        for (int b : to) best = best_of(best, link(a, b));
      fastest_link_.push_back(from == to ? Link{} : best);
    }
  for (const std::vector<int>& of_stage : ranks.of_stage)
    for (int m = 0; m < microbatches; ++m) rank_at_.push_back(of_stage[size_t(m) % of_stage.size()]);
  list_actions(orders_of(policy, ranks.of_stage), policy);
  list_round_trips();
}

void StepEstimate::add_stage(const std::vector<int>& ranks, const std::vector<int>& devices,
                             const Cluster& cluster) {
  ANTICHAIN_CHECK(int(ranks.size()) <= microbatches_, "every replica has a micro-batch");
  std::vector<int> own;
  for (int rank : ranks) own.push_back(devices[size_t(rank)]);
  Stage stage = {.first_seat = int(seats_.size()),
                 .replicas = int(ranks.size()),
                 .fastest = 0,
                 .reduce_link = &cluster.link(own)};
  for (int rank : ranks) {
    ranks_[size_t(rank)].seats.push_back(int(seats_.size()));
    seats_.push_back({.stage = int(stages_.size()), .rank = rank});
    stage.fastest = std::max(stage.fastest, ranks_[size_t(rank)].speed);
  }
  stages_.push_back(stage);
}

ComputeOrders StepEstimate::orders_of(const Policy& policy, const std::vector<std::vector<int>>& ranks) {
  ComputeOrders orders = policy.compute_orders(seats(ranks, microbatches_));
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const std::vector<int>& own = ranks_[r].seats;
    for (const Action& a : orders[r].actions) {
      SeatEstimate& seat = seats_[size_t(seat_of(a.stage, a.microbatch))];
      seat.whole += a.verb == Verb::backward;
      seat.halved += a.verb == Verb::backward_input;
      seat.late_weights = a.verb == Verb::backward_weight ? seat.late_weights + 1 : 0;
      stages_[size_t(a.stage)].halves = stages_[size_t(a.stage)].halves || seat.halved > 0;
    }
    if (own.size() == 1) seats_[size_t(own.front())].lead = lead_of(orders[r].actions);
  }
  return orders;
}

// Actions are listed as if every stage needed the one before. Then each comes after all that any cut can make
// it wait for.
void StepEstimate::list_actions(const ComputeOrders& orders, const Policy& policy) {
  std::vector<size_t> done(orders.size(), 0);
  std::vector<std::vector<size_t>::const_iterator> pair;
  for (const ComputeOrder& order : orders) pair.push_back(order.pairs.begin());
  std::vector<char> forward(stages_.size() * size_t(microbatches_), 0), backward = forward;
  const auto ready = [&](const Action& a) {
    if (a.verb == Verb::forward) return a.stage == 0 || forward[cell(a.stage - 1, a.microbatch)];
    if (a.verb == Verb::backward_weight) return true;  // its rank has done the input half before
    return a.stage + 1 == int(stages_.size()) || backward[cell(a.stage + 1, a.microbatch)];
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < orders.size(); ++r) {
      const std::vector<Action>& actions = orders[r].actions;
      for (; done[r] < actions.size() && ready(actions[done[r]]); ++done[r], moved = true) {
        const Action& a = actions[done[r]];
        ComputeAction action = {.seat = seat_of(a.stage, a.microbatch),
                                .stage = a.stage,
                                .microbatch = a.microbatch,
                                .verb = a.verb,
                                .cell = cell(a.stage, a.microbatch)};
        if (pair[r] != orders[r].pairs.end() && *pair[r] == done[r]) {
          const Action& partner = actions[done[r] + 1];
          if (!ready(partner)) break;
          action.partner = cell(partner.stage, partner.microbatch);
          ++pair[r];
        }
        if (a.verb != Verb::backward_weight)
          (a.verb == Verb::forward ? forward : backward)[cell(a.stage, a.microbatch)] = 1;
        actions_.push_back(action);
      }
    }
  }
  for (size_t r = 0; r < orders.size(); ++r)
    if (done[r] < orders[r].actions.size())
      throw Error(fmt::format("plans can't be searched for the schedule {}: where every stage needs the one "
                              "before it, rank {} waits forever in {}",
                              policy.name, r, print(orders[r].actions[done[r]])),
                  "choose " + training_policies_in_words());
}

// The list ends with the first stage that no round trips are known to.
void StepEstimate::list_round_trips() {
  for (size_t s = 0; s < stages_.size(); ++s) {
    const SeatEstimate& seat = seats_[size_t(stages_[s].first_seat)];
    const int M = seat.whole, w = seat.lead;
    for (size_t e = s; e < stages_.size() && stages_[e].replicas == 1; ++e) {
      const int v = seats_[size_t(stages_[e].first_seat)].lead, advance = w - v + 1;
      if (w == 0 || v == 0 || advance < 1) break;
      const int trips = M > w ? (M - 1 - w) / advance + 1 : 0;
      stages_[s].round_trips.push_back({v - 1, trips + 1, M - 1 - trips * advance});
    }
  }
}

// Returns the least time of the messages, or no_way_s where there are none.
double StepEstimate::lay(TransfersByStage& transfers, int from, int to, int messages, int64_t bytes) {
  if (messages == 0) return no_way_s;
  const Link& fastest = fastest_link_[size_t(from) * stages_.size() + size_t(to)];
  transfers[size_t(from)].push_back({to, within_node_.seconds(bytes, messages),
                                     between_nodes_.seconds(bytes, messages),
                                     fastest.seconds(bytes, messages)});
  return transfers[size_t(from)].back().least_s;
}

void StepEstimate::set(const StageSums& sums) {
  for (TransfersByStage* transfers : {&tensors_, &gradients_})
    for (std::vector<TransferTimes>& w : *transfers) w.clear();
  for (Stage& stage : stages_) stage.to_next_s = no_way_s;
  for (const Traffic& t : sums.traffic) {
    const double there_s = lay(tensors_, t.from_stage, t.to_stage, t.tensors, t.tensor_bytes);
    const double back_s = lay(gradients_, t.to_stage, t.from_stage, t.gradients, t.gradient_bytes);
    if (t.to_stage == t.from_stage + 1 && there_s != no_way_s && back_s != no_way_s)
      stages_[size_t(t.from_stage)].to_next_s = there_s + back_s;
  }
  for (size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    const StageSum& sum = sums.stages[s];
    const UpdateTimes updates = update_times(sum, stage.replicas, *stage.reduce_link, sharded_);
    const auto times_on = [&](double speed) {
      StageTimes times = stage_times(sum, speed);
      times.update_s = updates.update_s(speed, sum.backward_s + sum.overhead_s);
      return times;
    };
    stage.times = times_on(stage.fastest);
    stage.overhead_s = sum.overhead_s;
    stage.reduce_s = updates.reduce_s;
    stage.buckets = sums.buckets[s];
    stage.last_reduce_s = stage.buckets.empty() ? 0 : stage.reduce_s * stage.buckets.back().share;
    for (int i = stage.first_seat; i < stage.first_seat + stage.replicas; ++i) {
      SeatEstimate& seat = seats_[size_t(i)];
      seat.times = times_on(rank_of(seat).speed);
    }
  }
}

void StepEstimate::take(const ComputeAction& action) {
  SeatEstimate& seat = seats_[size_t(action.seat)];
  RankEstimate& rank = rank_of(seat);
  if (action.verb == Verb::backward_weight) {  // its gradients came and went with the input half
    seat.last_begin_s = rank.now_s, seat.last = action.verb;
    rank.now_s += seat.times.weight_s;
    return;
  }
  const bool forward = action.verb == Verb::forward;
  std::vector<double>& there_s = forward ? tensors_there_s_ : gradients_there_s_;
  double now_s = std::max(rank.now_s, there_s[action.cell]);
  if (action.partner) now_s = std::max(now_s, gradients_there_s_[*action.partner]);
  if (action.verb == Verb::backward) seat.last_begin_s = now_s, seat.last = action.verb;
  now_s += seat.times.of(action.verb);
  rank.now_s = now_s;
  for (const TransferTimes& transfer : (forward ? tensors_ : gradients_)[size_t(action.stage)]) {
    const size_t at = cell(transfer.stage, action.microbatch);
    double arrival_s = now_s;
    if (const int to = rank_at_[at]; to != seat.rank) {  // otherwise nothing is sent
      const size_t pair = size_t(seat.rank) * ranks_.size() + size_t(to);
      arrival_s =
          std::max(free_s_[pair], now_s) + (apart_[pair] ? transfer.between_nodes_s : transfer.within_node_s);
      free_s_[pair] = arrival_s;
    }
    there_s[at] = std::max(there_s[at], arrival_s);
  }
}

// Buckets of gradients are added up one after the other, each when the last replica has it.
double StepEstimate::added_up_s(const Stage& stage) const {
  double done_s = 0;
  for (const GradientBucket& bucket : stage.buckets) {
    for (int i = stage.first_seat; i < stage.first_seat + stage.replicas; ++i) {
      const SeatEstimate& seat = seats_[size_t(i)];
      const double overhead_s = stage.overhead_s / ranks_[size_t(seat.rank)].speed;
      const double part = seat.last == Verb::backward ? bucket.of_backward : bucket.of_weights;
      done_s = std::max(done_s, seat.last_begin_s + passed_s(seat.times.of(seat.last), overhead_s, part));
    }
    done_s += stage.reduce_s * bucket.share;
  }
  return done_s;
}

// A rank updates when its gradients are added up.
double StepEstimate::finish() {
  double last_s = 0;
  for (const Stage& stage : stages_) {
    const auto seats = std::span(seats_).subspan(size_t(stage.first_seat), size_t(stage.replicas));
    const double added_s = added_up_s(stage);
    for (const SeatEstimate& seat : seats) {
      RankEstimate& rank = rank_of(seat);
      rank.now_s = std::max(rank.now_s, added_s) + seat.times.update_s;
      last_s = std::max(last_s, rank.now_s);
    }
  }
  return last_s;
}

double StepEstimate::step_s() {
  free_s_.assign(ranks_.size() * ranks_.size(), 0);
  for (std::vector<double>* there_s : {&tensors_there_s_, &gradients_there_s_})
    there_s->assign(rank_at_.size(), 0);
  for (RankEstimate& rank : ranks_) rank.now_s = 0;
  for (const ComputeAction& action : actions_) take(action);
  return finish();
}

// Returns the time without waiting from the first forward's start to the end of the last action, or of the
// last that sends a gradient.
double StepEstimate::busy_s(const Stage& stage, bool late_weights) const {
  double longest_s = 0;
  for (int i = stage.first_seat; i < stage.first_seat + stage.replicas; ++i)
    longest_s = std::max(longest_s, seats_[size_t(i)].busy_s(late_weights));
  return longest_s;
}

// Returns a rank's work on all its stages, from the first moment at which any of them can begin.
double StepEstimate::rank_s(const RankEstimate& rank) const {
  double start_s = std::numeric_limits<double>::infinity(), busy_s = 0;
  for (int i : rank.seats) {
    const SeatEstimate& seat = seats_[size_t(i)];
    const Stage& stage = stages_[size_t(seat.stage)];
    start_s = std::min(start_s, stage.start_s);
    busy_s += seat.busy_s(true) + stage.last_reduce_s + seat.times.update_s;
  }
  return start_s + busy_s;
}

// Returns the same bound, by round trips to each of the later stages. It is 0 where the orders do not
// alternate.
double StepEstimate::trips_s(size_t s) const {
  const SeatEstimate& seat = seats_[size_t(stages_[s].first_seat)];
  double longest_s = 0, trip_s = 0;
  for (size_t e = s; const RoundTrips& to : stages_[s].round_trips) {
    const Stage& last = stages_[e++];
    trip_s += last.times.forward_s + last.times.backward_s;
    longest_s = std::max(longest_s, to.forwards * seat.times.forward_s + to.trips * trip_s +
                                        to.backwards * seat.times.backward_s);
    if (last.to_next_s == no_way_s) break;
    trip_s += last.to_next_s;
  }
  return longest_s;
}

const std::vector<double>& StepEstimate::at_least_s() {
  at_least_s_.resize(stages_.size());
  for (Stage& stage : stages_) stage.start_s = 0;
  for (size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    const double update_s = stage.last_reduce_s + stage.times.update_s;
    stage.tail_s = update_s;
    for (const TransferTimes& transfer : tensors_[s]) {
      Stage& to = stages_[size_t(transfer.stage)];
      to.start_s = std::max(to.start_s, stage.start_s + stage.times.forward_s + transfer.least_s);
    }
    for (const TransferTimes& transfer : gradients_[s]) {
      const Stage& to = stages_[size_t(transfer.stage)];
      stage.tail_s = std::max(stage.tail_s, transfer.least_s + to.gradient_s() + to.tail_s);
    }
    at_least_s_[s] = std::max(stage.start_s + std::max(busy_s(stage, false), trips_s(s)) + stage.tail_s,
                              stage.start_s + busy_s(stage, true) + update_s);
  }
  for (const RankEstimate& rank : ranks_) {
    if (rank.seats.size() == 1) continue;
    const double least_s = rank_s(rank);
    for (int i : rank.seats) {
      double& of_stage_s = at_least_s_[size_t(seats_[size_t(i)].stage)];
      of_stage_s = std::max(of_stage_s, least_s);
    }
  }
  return at_least_s_;
}

}  // namespace antichain
