// The validator says whether a schedule may be run: everything is there once, nothing comes before what it
// needs, and nobody waits forever.
//
// The checks go from the plain to the subtle, so that the first failure is the cause and not a consequence:
//
//   1. every action is known, on the rank whose turn it is, and there once
//   2. computing is complete and in order
//   3. gradients are added up over replicas, bucket by bucket, and every rank updates
//   4. messages are complete and in place
//   5. nothing waits in a circle
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "framework/error.h"
#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

constexpr size_t verbs = size_t(Verb::update) + 1;

[[noreturn]] void fail(int rank, const Action& action, const std::string& why) {
  throw Error(fmt::format("schedule, rank {}: {} {}", rank, print(action), why));
}

class Validator {
 public:
  Validator(const Schedule& schedule, const Profile& profile, const Plan& plan)
      : schedule_(schedule),
        crossing_(crossing_of(profile, plan)),
        stages_(crossing_.stages()),
        ranks_(plan.ranks()),
        blocks_(stages_) {
    for (const PlanStage& stage : plan.stages) {
      const auto has_weights = [&](int n) { return profile.nodes[size_t(n)].cost.param_bytes > 0; };
      most_buckets_.push_back(std::max(1, int(std::ranges::count_if(stage.nodes, has_weights))));
    }
    for (const auto* routes : {&crossing_.activations, &crossing_.gradients})
      for (const Route& route : *routes) routes_[route.message].emplace_back(route, blocks_++);
    for (const auto& [hop, route] : all_weight_routes(crossing_))
      routes_[route.message].emplace_back(route, blocks_++);
  }

  void validate() {
    check_size();
    places_.assign(size_t(blocks_) * size_t(schedule_.microbatches) * verbs, -1);
    for (int r = 0; r < int(schedule_.ranks.size()); ++r) enter(r);
    for (int s = 0; s < stages_; ++s) {
      for (int m = 0; m < schedule_.microbatches; ++m) check_compute(s, m);
      check_ascending(s);
      if (training_)
        for (int rank : crossing_.ranks[s]) check_update(s, rank);
    }
    for (const Route& route : crossing_.activations) check_route(route);
    if (training_)
      for (const Route& route : crossing_.gradients) check_route(route);
    if (training_)
      for (const WeightRoutes& weight : crossing_.weights) check_weight(weight);
    check_votes();
    const Partners partners = match_messages(schedule_);
    check_all_reached(schedule_, walk(schedule_, partners, [](int, int) {}));
  }

 private:
  void check_size() const {
    if (int(schedule_.ranks.size()) != ranks_)
      throw Error(
          fmt::format("the schedule has {} ranks, but the plan has {}", schedule_.ranks.size(), ranks_));
    if (schedule_.microbatches < 1) throw Error("the schedule has no micro-batches");
    if (schedule_.steps < 1 || schedule_.microbatches % schedule_.steps != 0)
      throw Error(fmt::format("the schedule's {} micro-batches are not those of {} equal steps",
                              schedule_.microbatches, schedule_.steps));
    check_seats(crossing_, schedule_.microbatches);
    for (int s = 0; schedule_.steps > 1 && s < stages_; ++s)
      if (schedule_.microbatches_of_step() % crossing_.replicas(s) != 0)
        throw Error(
            fmt::format("the schedule has several steps of {} micro-batches, which the {} replicas of "
                        "stage {} can't share evenly",
                        schedule_.microbatches_of_step(), crossing_.replicas(s), s));
    if (!schedule_.delays.empty() && int(schedule_.delays.size()) != stages_)
      throw Error(fmt::format("the schedule has {} delays, but the plan has {} stages",
                              schedule_.delays.size(), stages_));
  }

  // Every action is known, on the right rank, and there once.
  void enter(int rank) {
    const std::vector<Action>& actions = schedule_.ranks[size_t(rank)];
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      check_fields(rank, action);
      if (action.microbatch < 0
              ? std::count(actions.begin(), actions.begin() + int(i), action) >= most(action)
              : std::exchange(places_[place(action)], int(i)) >= 0)
        fail(rank, action,
             action.verb == Verb::recv && action.message.flow == Flow::gradient
                 ? "is there twice: a gradient would be used twice"
                 : "is there twice");
      training_ = training_ || learns(action);
    }
  }

  int most(const Action& a) const {
    return a.verb == Verb::update || a.verb == Verb::reduce ? schedule_.steps : 1;
  }

  static bool learns(const Action& a) {
    return a.verb == Verb::update || joins(a.verb) || (computes(a.verb) && a.verb != Verb::forward) ||
           a.message.flow != Flow::activation;
  }

  void check_fields(int rank, const Action& a) const {
    if (a.stage < 0 || a.stage >= stages_)
      fail(rank, a, fmt::format("names no stage: the plan has {}", stages_));
    const std::vector<int>& ranks = crossing_.ranks[a.stage];
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end())
      fail(rank, a, fmt::format("belongs to rank {} by the plan", fmt::join(ranks, " or ")));
    const bool of_step = a.verb == Verb::update || joins(a.verb);
    if (of_step ? a.microbatch != -1 : a.microbatch < 0 || a.microbatch >= schedule_.microbatches)
      fail(rank, a, fmt::format("names no micro-batch: there are {}", schedule_.microbatches));
    if (const int turn = of_step ? rank : crossing_.rank_of(a.stage, a.microbatch); turn != rank)
      fail(rank, a, fmt::format("belongs to rank {}, whose turn it is by the plan", turn));
    if (a.verb == Verb::reduce && ranks.size() == 1)
      fail(rank, a, "adds up gradients over replicas, but the stage has one rank");
    if (const int most = most_buckets_[size_t(a.stage)]; a.bucket >= most)
      fail(rank, a,
           fmt::format("names no bucket: the stage's weights make {} at most, counted from 0", most));
    if (a.verb == Verb::load && !crossing_.loads[a.stage])
      fail(rank, a, "loads samples, but the stage uses no input");
    if (is_message(a) && block_of(a) < 0) fail(rank, a, "carries a message that the plan does not ask for");
  }

  static bool is_message(const Action& a) { return a.verb == Verb::send || a.verb == Verb::recv; }
  // Returns the block of the route by which the plan asks for this message between this stage and the peer,
  // whose turn it is in the other one. Returns −1 where the plan does not ask for it.
  int block_of(const Action& a) const {
    const auto known = routes_.find(a.message);
    if (known == routes_.end()) return -1;
    const bool sends = a.verb == Verb::send;
    for (const auto& [route, block] : known->second)
      if ((sends ? route.from_stage : route.to_stage) == a.stage && !crossing_.stays(route, a.microbatch) &&
          crossing_.rank_of(sends ? route.to_stage : route.from_stage, a.microbatch) == a.peer)
        return block;
    return -1;
  }
  // Every action of a micro-batch that the plan asks for has a place in one table: in the block of its stage
  // or route, the row of its micro-batch.
  size_t place(const Action& a) const {
    const int block = is_message(a) ? block_of(a) : a.stage;
    return (size_t(block) * size_t(schedule_.microbatches) + size_t(a.microbatch)) * verbs + size_t(a.verb);
  }

  // Returns the index in the rank's list, or −1 when it is not there.
  int find(int rank, const Action& action) const {
    const std::vector<Action>& actions = schedule_.ranks[size_t(rank)];
    if (action.microbatch < 0)  // it is near the end
      return int(actions.rend() - std::find(actions.rbegin(), actions.rend(), action)) - 1;
    const int index = places_[place(action)];
    return index >= 0 && actions[size_t(index)] == action ? index : -1;
  }
  void must_be(int rank, const Action& action, std::string_view consequence = "") const {
    if (find(rank, action) < 0) fail(rank, action, fmt::format("is missing{}", consequence));
  }
  void must_precede(int rank, const Action& first, const Action& second,
                    std::string_view consequence = "") const {
    if (find(rank, first) > find(rank, second))
      fail(rank, second, fmt::format("comes before {}, which it needs{}", print(first), consequence));
  }

  // Returns the backward, or where it is parted this half of it.
  Action backward(int s, int m, Verb half) const {
    const Action whole{Verb::backward, s, m};
    return find(crossing_.rank_of(s, m), whole) >= 0 ? whole : Action{half, s, m};
  }
  // These say which action computes the gradients that are sent, and which the weights'.
  Action sends_gradients(int s, int m) const { return backward(s, m, Verb::backward_input); }
  Action adds_weights(int s, int m) const { return backward(s, m, Verb::backward_weight); }

  void check_compute(int s, int m) const {
    const int rank = crossing_.rank_of(s, m);
    const Action load{Verb::load, s, m}, forward{Verb::forward, s, m}, backward{Verb::backward, s, m};
    const Action input{Verb::backward_input, s, m}, weight{Verb::backward_weight, s, m};
    must_be(rank, forward);
    if (crossing_.loads[s]) must_be(rank, load), must_precede(rank, load, forward);
    if (!training_) return;
    const bool halves = find(rank, input) >= 0 || find(rank, weight) >= 0;
    if (find(rank, backward) >= 0 && halves)
      fail(rank, backward, "is there beside a half of it: gradients would be used twice");
    if (halves) must_be(rank, input), must_be(rank, weight), must_precede(rank, input, weight);
    if (!halves) must_be(rank, backward);
    must_precede(rank, forward, halves ? input : backward);
  }

  // Slots are rings, and weight gradients accumulate, in micro-batch order on every rank.
  void check_ascending(int s) const {
    for (int m = 0; m + crossing_.replicas(s) < schedule_.microbatches; ++m) {
      const int next = m + crossing_.replicas(s), rank = crossing_.rank_of(s, m);
      must_precede(rank, {Verb::forward, s, m}, {Verb::forward, s, next}, ": micro-batches are out of order");
      if (!training_) continue;
      must_precede(rank, sends_gradients(s, m), sends_gradients(s, next), ": micro-batches are out of order");
      must_precede(rank, adds_weights(s, m), adds_weights(s, next),
                   ": weight gradients add up in micro-batch order");
    }
  }

  // Replicas add up finished gradients, so that all update alike. It is asked whether a rank may update once
  // a step, when the gradients of all its stages are there.
  void check_update(int s, int rank) const {
    const Action update{Verb::update, s};
    if (schedule_.steps > 1) return check_steps(s, rank, update);
    const std::vector<Action> reduces = reduces_of(s);
    must_be(rank, update);
    for (size_t k = 0; k < reduces.size(); ++k) {
      must_be(rank, reduces[k], ": every replica takes part");
      if (k > 0) must_precede(rank, reduces[k - 1], reduces[k]);
      must_precede(rank, reduces[k], update);
    }
    for (int k = 0; k < stages_; ++k)
      for (int of = (s + k) % stages_, m = 0; m < schedule_.microbatches; ++m)
        if (crossing_.rank_of(of, m) == rank)
          must_precede(rank, adds_weights(of, m), of == s && !reduces.empty() ? reduces.front() : update,
                       of == s ? "" : ": a rank updates after all its backwards");
  }

  // Of several steps, each updates after its backwards and before those of the next. Nothing else may keep
  // ranks from going on but the sums of replicas, which come right before the update.
  void check_steps(int s, int rank, const Action& update) const {
    std::vector<Action> ends = reduces_of(s);  // what a step ends with
    ends.push_back(update);
    std::vector<int> begins, updates;
    const std::vector<Action>& actions = schedule_.ranks[size_t(rank)];
    for (int i = 0; i < int(actions.size()); ++i) {
      const Action& a = actions[size_t(i)];
      if (a.stage != s || a.verb == Verb::vote || a.message.flow == Flow::weight)
        fail(rank, a,
             "is in a schedule of several steps, which is for one stage a rank, without votes and shared "
             "weights");
      if (a != update) continue;
      updates.push_back(i);
      begins.push_back(i + 1 - int(ends.size()));
      for (size_t k = 0; k < ends.size(); ++k)
        if (begins.back() < 0 || actions[size_t(begins.back()) + k] != ends[k])
          fail(rank, ends[k], "is missing right before the update: every replica takes part");
      int last = begins.back() - 1;  // the terms of a sum are where forwards have what they pass on
      while (last >= 0 && actions[size_t(last)].verb == Verb::send) --last;
      if (ends.size() > 1 && last != last_gradient(actions, begins.back()))
        fail(rank, ends[0], "does not follow the last backward of its step");
    }
    for (const Action& end : ends)
      if (const auto count = std::ranges::count(actions, end); count != schedule_.steps)
        fail(rank, end,
             fmt::format("is there {} times, but the schedule has {} steps", count, schedule_.steps));
    for (int m = 0; m < schedule_.microbatches; ++m) {
      if (crossing_.rank_of(s, m) != rank) continue;
      const auto step = size_t(m / schedule_.microbatches_of_step());
      const Action backward = adds_weights(s, m);
      const int at = find(rank, backward);
      if (at > begins[step] || (step > 0 && at < updates[step - 1]))
        fail(rank, backward, "does not come between the updates of its step and the one before");
    }
  }

  // All ranks vote or none does, once each, between the last of a rank's gradients and its first update.
  void check_votes() const {
    if (!has_votes(schedule_)) return;
    for (int rank = 0; rank < int(schedule_.ranks.size()); ++rank) {
      const auto& actions = schedule_.ranks[size_t(rank)];
      const auto vote = std::ranges::find(actions, Verb::vote, &Action::verb);
      if (vote == actions.end())
        throw Error(
            fmt::format("schedule, rank {}: there is no vote, but other ranks have one: all ranks "
                        "vote or none does",
                        rank));
      for (auto later = vote + 1; later != actions.end(); ++later) {
        if (later->verb == Verb::vote) fail(rank, *later, "is a second vote of the rank");
        const bool gradient = later->verb == Verb::reduce || later->message.flow == Flow::weight ||
                              (computes(later->verb) && learns(*later));
        if (gradient) fail(rank, *later, "comes after the vote, which is about all gradients");
      }
      for (auto earlier = actions.begin(); earlier != vote; ++earlier)
        if (earlier->verb == Verb::update) fail(rank, *earlier, "comes before the vote that allows it");
    }
  }

  // Returns the all-reduces that the stage needs: of its buckets, if any replica has one, else of all weights
  // at once.
  std::vector<Action> reduces_of(int s) const {
    if (crossing_.replicas(s) == 1) return {};
    int buckets = 0;
    for (const int rank : crossing_.ranks[s]) {
      const auto& actions = schedule_.ranks[rank];
      for (const Action& a : actions)
        if (a.verb == Verb::reduce && a.stage == s) buckets = std::max(buckets, a.bucket + 1);
    }
    const Action whole{.verb = Verb::reduce, .stage = s};
    if (buckets == 0) return {whole};
    std::vector<Action> reduces(size_t(buckets), whole);
    for (int k = 0; k < buckets; ++k) reduces[size_t(k)].bucket = k;
    for (const int rank : crossing_.ranks[s])
      if (find(rank, whole) >= 0)
        fail(rank, whole, "is there beside buckets: gradients would be added up twice");
    return reduces;
  }

  // Each message is sent after the action that produces it and received before the action that uses it, by
  // both, every micro-batch. On one rank the one comes before the other.
  void check_route(const Route& route) const {
    const bool gradient = route.message.flow == Flow::gradient;
    const int from = route.from_stage, to = route.to_stage;
    for (int m = 0; m < schedule_.microbatches; ++m) {
      const Action produces = gradient ? sends_gradients(from, m) : Action{Verb::forward, from, m};
      const Action uses = gradient ? sends_gradients(to, m) : Action{Verb::forward, to, m};
      const int sender = crossing_.rank_of(from, m), receiver = crossing_.rank_of(to, m);
      if (sender == receiver) {
        must_precede(sender, produces, uses);
        continue;
      }
      const Action send{Verb::send, from, m, route.message, receiver};
      const Action recv{Verb::recv, to, m, route.message, sender};
      if (find(sender, send) < 0)
        must_be(sender, send,
                find(receiver, recv) < 0 ? "" : fmt::format(": rank {} waits for it", receiver));
      must_be(receiver, recv,
              gradient ? ": a gradient is sent and not used" : ": it is sent and not received");
      must_precede(sender, produces, send);
      must_precede(receiver, recv, uses, gradient ? ": a gradient would go unused" : "");
    }
  }

  // The ranks that have a shared weight fold its gradient, one after the other, each when its own gradients
  // are finished, and the last tells the others before they update.
  void check_weight(const WeightRoutes& weight) const {
    std::map<int, Action> heard;  // by rank: what it received last
    const auto check = [&](const Route& route) {
      for (int m = 0; m < crossing_.replicas(route.to_stage); ++m) {
        const int from = route.from_stage, to = route.to_stage;
        const int sender = crossing_.rank_of(from, m), receiver = crossing_.rank_of(to, m);
        const Action send{Verb::send, from, m, route.message, receiver};
        const Action recv{Verb::recv, to, m, route.message, sender};
        must_be(sender, send, ": a shared weight's gradient would lack what this rank adds");
        must_be(receiver, recv, ": a shared weight's gradient is sent and not received");
        if (const auto before = heard.find(sender); before != heard.end())
          must_precede(sender, before->second, send);
        for (int s = 0; s < stages_; ++s) {
          check_finished(s, sender, send);
          if (std::ranges::count(crossing_.ranks[s], receiver))
            must_precede(receiver, recv, {Verb::update, s},
                         ": a shared weight would not learn from all its uses");
        }
      }
      for (int m = 0; m < crossing_.replicas(route.to_stage); ++m)
        heard[crossing_.rank_of(route.to_stage, m)] = {Verb::recv, route.to_stage, m, route.message,
                                                       crossing_.rank_of(route.from_stage, m)};
    };
    std::ranges::for_each(weight.folds, check);
    std::ranges::for_each(weight.totals, check);
  }
  // All gradients that the stage's rank computes, and their sums over replicas, come before the action.
  void check_finished(int s, int rank, const Action& action) const {
    for (int m = 0; m < schedule_.microbatches; ++m)
      if (crossing_.rank_of(s, m) == rank) must_precede(rank, adds_weights(s, m), action);
    if (std::ranges::count(crossing_.ranks[s], rank))
      for (const Action& reduce : reduces_of(s)) must_precede(rank, reduce, action);
  }

  const Schedule& schedule_;
  const Crossing crossing_;
  const int stages_, ranks_;
  int blocks_;                     // those of stages, then those of routes
  std::vector<int> most_buckets_;  // per stage
  bool training_ = false;
  std::map<Message, std::vector<std::pair<Route, int>>> routes_;  // each with its block
  std::vector<int> places_;                                       // index in the rank's list, −1 for none
};

}  // namespace

void validate(const Schedule& schedule, const Profile& profile, const Plan& plan) {
  validate(plan, profile);
  Validator(schedule, profile, plan).validate();
}

}  // namespace antichain
