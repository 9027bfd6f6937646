// Whether a schedule may be run: everything is there once, nothing comes before what it needs, nobody waits forever.
//
// The checks go from the plain to the subtle, so that the first failure is the cause and not a consequence:
// actions known and once  |>  compute complete and in order  |>  messages complete and in place  |>  updates
// |>  no deadlock  |>  slots.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "framework/error.h"
#include "pipeline/happens_before.h"
#include "pipeline/schedule_passes.h"

namespace antichain {
namespace {

[[noreturn]] void fail(int rank, const Action& action, const std::string& why) {
  throw Error(fmt::format("schedule, rank {}: {} {}", rank, print(action), why));
}

class Validator {
 public:
  Validator(const Schedule& schedule, const Profile& network, const Plan& plan)
      : schedule_(schedule), cut_(cut_of(network, plan)), stages_(int(plan.stages.size())) {
    asked_.insert(cut_.activations.begin(), cut_.activations.end());
    asked_.insert(cut_.gradients.begin(), cut_.gradients.end());
  }

  void validate() {
    check_size();
    for (int r = 0; r < int(schedule_.ranks.size()); ++r) enter(r);
    for (int s = 0; s < stages_; ++s) {
      for (int m = 0; m < schedule_.microbatches; ++m) check_compute(s, m);
      check_ascending(s);
      if (training_) check_update(s);
    }
    for (const Route& route : cut_.activations) check_route(route);
    if (training_)
      for (const Route& route : cut_.gradients) check_route(route);
    const Partners partners = match_messages(schedule_);
    check_all_reached(schedule_, walk(schedule_, partners, [](int, int) {}));
    validate_slots(schedule_, slots(schedule_));
  }

 private:
  void check_size() const {
    if (int(schedule_.ranks.size()) != stages_)
      throw Error(
          fmt::format("the schedule has {} ranks, but the plan has {}", schedule_.ranks.size(), stages_));
    if (schedule_.microbatches < 1) throw Error("the schedule has no micro-batches");
  }

  // Actions known, on the right rank, and once.
  void enter(int rank) {
    for (int i = 0; i < int(schedule_.ranks[rank].size()); ++i) {
      const Action& action = schedule_.ranks[rank][i];
      check_fields(rank, action);
      if (!index_.emplace(action, i).second) fail(rank, action, "is there twice" + consequence(action));
      training_ = training_ || learns(action);
    }
  }

  static bool learns(const Action& a) {
    return a.verb == Verb::step || (computes(a.verb) && a.verb != Verb::forward) ||
           a.message.flow == Flow::gradient;
  }

  static std::string consequence(const Action& action) {
    const bool gradient = action.verb == Verb::recv && action.message.flow == Flow::gradient;
    return gradient ? ": a gradient would be used twice" : "";
  }

  void check_fields(int rank, const Action& a) const {
    if (a.stage < 0 || a.stage >= stages_)
      fail(rank, a, fmt::format("names no stage: the plan has {}", stages_));
    if (cut_.rank_of[a.stage] != rank)
      fail(rank, a, fmt::format("belongs to rank {} by the plan", cut_.rank_of[a.stage]));
    const bool step = a.verb == Verb::step;
    if (step ? a.microbatch != -1 : a.microbatch < 0 || a.microbatch >= schedule_.microbatches)
      fail(rank, a, fmt::format("names no micro-batch: there are {}", schedule_.microbatches));
    if (a.verb == Verb::load && !cut_.loads[a.stage])
      fail(rank, a, "loads samples, but the stage uses no input");
    if ((a.verb == Verb::send || a.verb == Verb::recv) && !asked_for(a))
      fail(rank, a, "carries a message that the plan does not ask for");
  }

  bool asked_for(const Action& a) const {
    const auto at_peer = std::find(cut_.rank_of.begin(), cut_.rank_of.end(), a.peer);
    if (at_peer == cut_.rank_of.end()) return false;
    const int there = int(at_peer - cut_.rank_of.begin());
    const Route route =
        a.verb == Verb::send ? Route{a.message, a.stage, there} : Route{a.message, there, a.stage};
    return asked_.count(route) > 0;
  }

  // Index in its rank's list; −1 when it is not there.
  int find(const Action& action) const {
    const auto found = index_.find(action);
    return found == index_.end() ? -1 : found->second;
  }
  int rank_of(const Action& action) const { return cut_.rank_of[action.stage]; }

  void must_be(const Action& action, const std::string& consequence = "") const {
    if (find(action) < 0) fail(rank_of(action), action, "is missing" + consequence);
  }
  void must_precede(const Action& first, const Action& second, const std::string& consequence = "") const {
    if (find(first) > find(second))
      fail(rank_of(second), second,
           fmt::format("comes before {}, which it needs{}", print(first), consequence));
  }

  // Which action computes the gradients that are sent, and which the weights'.
  Action sends_gradients(int s, int m) const {
    const Action whole{Verb::backward, s, m};
    return find(whole) >= 0 ? whole : Action{Verb::backward_input, s, m};
  }
  Action adds_weights(int s, int m) const {
    const Action whole{Verb::backward, s, m};
    return find(whole) >= 0 ? whole : Action{Verb::backward_weight, s, m};
  }

  void check_compute(int s, int m) const {
    const Action load{Verb::load, s, m}, forward{Verb::forward, s, m}, backward{Verb::backward, s, m};
    const Action input{Verb::backward_input, s, m}, weight{Verb::backward_weight, s, m};
    must_be(forward);
    if (cut_.loads[s]) must_be(load), must_precede(load, forward);
    if (!training_) return;
    const bool halves = find(input) >= 0 || find(weight) >= 0;
    if (find(backward) >= 0 && halves)
      fail(rank_of(backward), backward, "is there beside a half of it: gradients would be used twice");
    if (halves) must_be(input), must_be(weight), must_precede(input, weight);
    if (!halves) must_be(backward);
    must_precede(forward, sends_gradients(s, m));
  }

  // Slots are rings, and weight gradients accumulate, in micro-batch order.
  void check_ascending(int s) const {
    for (int m = 0; m + 1 < schedule_.microbatches; ++m) {
      const Action forward{Verb::forward, s, m}, next_forward{Verb::forward, s, m + 1};
      must_precede(forward, next_forward, ": micro-batches are out of order");
      if (!training_) continue;
      must_precede(sends_gradients(s, m), sends_gradients(s, m + 1), ": micro-batches are out of order");
      must_precede(adds_weights(s, m), adds_weights(s, m + 1),
                   ": weight gradients add up in micro-batch order");
    }
  }

  void check_update(int s) const {
    const Action step{Verb::step, s};
    must_be(step);
    for (int m = 0; m < schedule_.microbatches; ++m) must_precede(adds_weights(s, m), step);
  }

  // Sent after the action that produces it, received before the action that uses it, by both, every micro-batch.
  void check_route(const Route& route) const {
    const bool gradient = route.message.flow == Flow::gradient;
    const int from = route.from_stage, to = route.to_stage;
    for (int m = 0; m < schedule_.microbatches; ++m) {
      const Action send{Verb::send, from, m, route.message, cut_.rank_of[to]};
      const Action recv{Verb::recv, to, m, route.message, cut_.rank_of[from]};
      must_be(send, find(recv) >= 0 ? fmt::format(": rank {} waits for it", send.peer) : "");
      must_be(recv, gradient ? ": a gradient is sent and not used" : ": it is sent and not received");
      must_precede(gradient ? sends_gradients(from, m) : Action{Verb::forward, from, m}, send);
      must_precede(recv, gradient ? sends_gradients(to, m) : Action{Verb::forward, to, m},
                   gradient ? ": a gradient would go unused" : "");
    }
  }

  const Schedule& schedule_;
  const Cut cut_;
  const int stages_;
  bool training_ = false;
  std::set<Route> asked_;
  std::map<Action, int> index_;  // place in its rank's list
};

}  // namespace

void validate(const Schedule& schedule, const Profile& network, const Plan& plan) {
  Validator(schedule, network, plan).validate();
}

}  // namespace antichain
