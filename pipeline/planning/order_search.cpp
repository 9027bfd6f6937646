#include "pipeline/planning/order_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

constexpr int64_t most_actions = 40'000'000, most_orders = 200'000;  // that are timed, in all
constexpr int most_starts = 3;
constexpr double hot = 0.01, cold = 1e-5;  // shares of a step that an exchange may lose, at first and at last
constexpr double infinite_s = std::numeric_limits<double>::infinity();

bool begins_gradient(Verb verb) { return verb == Verb::backward || verb == Verb::backward_input; }
bool ends(Verb verb) { return verb == Verb::backward || verb == Verb::backward_weight; }

// Returns the most micro-batches in flight, from the begin of F to the end of W.
int most_in_flight(const RankOrder& order) {
  int now = 0, most = 0;
  for (const Computing& c : order) {
    if (c.verb == Verb::forward) most = std::max(most, ++now);
    now -= ends(c.verb);
  }
  return most;
}

struct Candidate {
  RankOrders orders;
  double step_s = infinite_s;
};

// GreedyOrder plays a step through. Of all stages the one that can begin first does something next.
class GreedyOrder {
 public:
  struct DispatchingRule {
    bool gradients_first = true;  // an input half before a forward where both are there
    double patience = 0;          // waits for what comes within so many lengths of a weight half
  };
  GreedyOrder(const OrderClock& clock, const std::vector<int>& in_flight, DispatchingRule rule)
      : clock_(clock), in_flight_(in_flight), rule_(rule), stages_(size_t(clock.stages())) {
    for (Stage& s : stages_) s.tensors_s.assign(size_t(clock.microbatches()), 0), s.gradients_s = s.tensors_s;
    wait_for(clock.tensors(), &Stage::tensors_s, &Stage::tensors_missing);
    wait_for(clock.gradients(), &Stage::gradients_s, &Stage::gradients_missing);
  }

  // Returns nothing where nobody can go on before all is done.
  std::optional<RankOrders> make() {
    for (int left = 3 * clock_.stages() * clock_.microbatches(); left > 0; --left) {
      Next best;
      for (int s = 0; s < clock_.stages(); ++s)
        if (const Next next = next_of(s); next.start_s < best.start_s) best = next;
      if (best.start_s == infinite_s) return std::nullopt;
      take(best);
    }
    RankOrders orders;
    for (Stage& s : stages_) orders.push_back(std::move(s.order));
    return orders;
  }

 private:
  struct Stage {
    RankOrder order;
    double now_s = 0;
    int forwards = 0, inputs = 0, weights = 0;
    std::vector<double> tensors_s, gradients_s;           // when the last of each micro-batch has come
    std::vector<int> tensors_missing, gradients_missing;  // messages that were not sent yet
  };
  struct Next {
    double start_s = infinite_s;
    int stage = 0;
    Computing what;
  };

  void wait_for(const std::vector<Wire>& wires, std::vector<double> Stage::*,
                std::vector<int> Stage::*missing) {
    for (Stage& s : stages_) (s.*missing).assign(size_t(clock_.microbatches()), 0);
    for (const Wire& wire : wires)
      for (int& count : stages_[size_t(wire.to)].*missing) ++count;
    free_s_.resize(free_s_.size() + wires.size(), 0);
  }

  Next next_of(int stage) const {
    const Stage& s = stages_[size_t(stage)];
    const int M = clock_.microbatches();
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
    const double patience_s = rule_.patience * clock_.times(stage).weight_s;
    if (s.weights < s.inputs && first.start_s > s.now_s + patience_s)
      return at(Verb::backward_weight, s.weights, s.now_s);
    return first;
  }

  void take(const Next& next) {
    Stage& s = stages_[size_t(next.stage)];
    const auto [verb, m] = next.what;
    s.order.push_back(next.what);
    s.now_s = next.start_s + clock_.times(next.stage).of(verb);
    if (verb == Verb::backward_weight) {
      ++s.weights;
      return;
    }
    const bool forward = verb == Verb::forward;
    ++(forward ? s.forwards : s.inputs);
    const std::vector<Wire>& wires = forward ? clock_.tensors() : clock_.gradients();
    for (size_t w = 0; w < wires.size(); ++w) {
      if (wires[w].from != next.stage) continue;
      double& free_s = free_s_[w + (forward ? 0 : clock_.tensors().size())];
      free_s = std::max(free_s, s.now_s) + wires[w].seconds;
      Stage& to = stages_[size_t(wires[w].to)];
      double& there_s = (forward ? to.tensors_s : to.gradients_s)[size_t(m)];
      there_s = std::max(there_s, free_s);
      --(forward ? to.tensors_missing : to.gradients_missing)[size_t(m)];
    }
  }

  const OrderClock& clock_;
  const std::vector<int>& in_flight_;
  const DispatchingRule rule_;
  std::vector<Stage> stages_;
  std::vector<double> free_s_;  // links, by wire
};

class OrderSearch {
 public:
  OrderSearch(const Profile& profile, const Plan& plan, const Cluster& cluster, int microbatches,
              const std::vector<int>& in_flight)
      : profile_(profile), plan_(plan), cluster_(cluster), clock_(profile, plan, cluster, microbatches) {
    for (const PlanStage& stage : plan.stages)
      in_flight_.push_back(in_flight.at(size_t(stage.ranks.front())));
    bound_s_ = order_bound_s(clock_, in_flight_);
    budget_ = std::min(most_actions, 3 * most_orders * int64_t(clock_.stages()) * clock_.microbatches());
  }

  PlannedOrder run() {
    start();
    if (starts_.empty())
      throw Error(fmt::format("no order of {} micro-batches keeps {} in flight on the ranks",
                              clock_.microbatches(), fmt::join(in_flight_, ", ")),
                  "allow more with --in-flight", ExitCode::usage);
    const int count = std::min(most_starts, int(starts_.size()));
    Candidate best = starts_.front();
    for (int i = 0; i < count && !proved(best.step_s); ++i) {
      Candidate found = improve(starts_[size_t(i)], (budget_ - spent_) / (count - i));
      if (found.step_s < best.step_s) best = std::move(found);
    }
    return finish(best);
  }

 private:
  bool proved(double step_s) const { return step_s <= bound_s_ * (1 + 1e-12); }

  void start() {
    for (const Policy& policy : policies())
      if (policy.trains) add(orders_of(policy));
    for (const bool gradients_first : {true, false})
      for (const double patience : {0., 0.5, 1.})
        add(GreedyOrder(clock_, in_flight_, {gradients_first, patience}).make());
    std::ranges::stable_sort(starts_, {}, &Candidate::step_s);
  }

  std::optional<RankOrders> orders_of(const Policy& policy) const {
    std::vector<std::vector<int>> ranks;
    for (const PlanStage& stage : plan_.stages) ranks.push_back(stage.ranks);
    ComputeOrders made;
    try {
      made = policy.compute_orders(seats(ranks, clock_.microbatches()));
    } catch (const Error&) {  // it is for other placements, or numbers of micro-batches
      return std::nullopt;
    }
    RankOrders orders(size_t(clock_.stages()));
    for (const ComputeOrder& of_rank : made)
      for (const Action& a : of_rank.actions) orders[size_t(a.stage)].push_back({a.verb, a.microbatch});
    return orders;
  }

  void add(const std::optional<RankOrders>& orders) {
    if (!orders) return;
    for (size_t s = 0; s < orders->size(); ++s)
      if (most_in_flight((*orders)[s]) > in_flight_[s]) return;
    Candidate candidate{*orders, time(*orders)};
    if (candidate.step_s == infinite_s) return;
    join_halves(candidate);
    starts_.push_back(std::move(candidate));
  }

  double time(const RankOrders& orders) {
    for (const RankOrder& order : orders) spent_ += int64_t(order.size());
    return clock_.step_s(orders);
  }

  // Makes an I and the W behind it one B wherever the step does not grow.
  void join_halves(Candidate& candidate) {
    for (size_t s = 0; s < candidate.orders.size(); ++s)
      for (size_t i = candidate.orders[s].size(); i-- > 1;) {
        if (!joinable(candidate.orders[s], i)) continue;
        RankOrders joined = candidate.orders;
        join(joined[s], i);
        if (const double step_s = time(joined); step_s <= candidate.step_s)
          candidate.orders = std::move(joined), candidate.step_s = step_s;
      }
  }
  static bool joinable(const RankOrder& order, size_t i) {
    return order[i].verb == Verb::backward_weight && order[i - 1].verb == Verb::backward_input &&
           order[i].microbatch == order[i - 1].microbatch;
  }
  static void join(RankOrder& order, size_t i) {
    order[i - 1].verb = Verb::backward;
    order.erase(order.begin() + int(i));
  }

  // Whether the action at i may come before its neighbour.
  bool exchangeable(int stage, const RankOrder& order, size_t i) const {
    const auto [first, m] = order[i - 1];
    const auto [second, n] = order[i];
    if (first == second || (begins_gradient(first) && begins_gradient(second)) ||
        (ends(first) && ends(second)))
      return false;            // micro-batches stay in order
    if (m == n) return false;  // one needs the other
    return !(ends(first) && second == Verb::forward) || n + 1 - m <= in_flight_[size_t(stage)];
  }

  // Changes the orders somewhere on the critical path. Returns whether there was anything to change.
  bool change(RankOrders& orders, const std::vector<OrderClock::At>& path) {
    for (int tries = 0; tries < 8; ++tries) {
      const size_t k = random_() % path.size();
      const auto [stage, index] = path[k];
      RankOrder& order = orders[size_t(stage)];
      const size_t i = size_t(index);
      if (order[i].verb == Verb::backward && random_() % 4 == 0) {
        order[i].verb = Verb::backward_input;
        order.insert(order.begin() + index + 1, {Verb::backward_weight, order[i].microbatch});
        return true;
      }
      const bool follows =
          k + 1 < path.size() && path[k + 1].stage == stage && path[k + 1].index == index - 1;
      if (!follows) continue;
      if (joinable(order, i)) {
        join(order, i);
        return true;
      }
      if (!exchangeable(stage, order, i)) continue;
      std::swap(order[i - 1], order[i]);
      return true;
    }
    return false;
  }

  Candidate improve(const Candidate& from, int64_t share) {
    Candidate now = from, best = from;
    const int64_t begin = spent_;
    std::uniform_real_distribution<double> unit(0, 1);
    time(now.orders);
    std::vector<OrderClock::At> path = clock_.critical_path();
    while (spent_ - begin < share && !proved(best.step_s)) {
      const double done = double(spent_ - begin) / double(share);
      const double heat_s = from.step_s * hot * std::pow(cold / hot, done);
      RankOrders changed = now.orders;
      if (!change(changed, path)) {
        spent_ += 1000;
        continue;
      }
      const double step_s = time(changed);
      if (step_s > now.step_s && !(unit(random_) < std::exp((now.step_s - step_s) / heat_s))) continue;
      now.orders = std::move(changed), now.step_s = step_s;
      path = clock_.critical_path();
      if (step_s < best.step_s) best = now;
    }
    return best;
  }

  PlannedOrder finish(const Candidate& best) const {
    const Crossing crossing = crossing_of(profile_, plan_);
    const Seats seats = antichain::seats(crossing.ranks, clock_.microbatches());
    ComputeOrders orders(seats.size());
    for (size_t s = 0; s < best.orders.size(); ++s)
      for (const Computing& c : best.orders[s])
        orders[size_t(plan_.stages[s].ranks.front())].actions.push_back({c.verb, int(s), c.microbatch});
    PlannedOrder planned{.schedule = complete(orders, crossing, seats, clock_.microbatches()),
                         .bound_s = bound_s_};
    planned.step_s = simulate(planned.schedule, plan_, profile_, cluster_).step_s;
    planned.bound_s = std::min(planned.bound_s, planned.step_s);  // but for rounding
    return planned;
  }

  const Profile& profile_;
  const Plan& plan_;
  const Cluster& cluster_;
  OrderClock clock_;
  std::vector<int> in_flight_;  // by stage
  double bound_s_ = 0;
  std::vector<Candidate> starts_;
  std::mt19937_64 random_{1};
  int64_t budget_ = 0, spent_ = 0;  // actions that are timed
};

}  // namespace

std::vector<int> default_in_flight(const Profile& profile, const Plan& plan, const Cluster& cluster,
                                   int microbatches) {
  std::vector<int> limits(size_t(plan.ranks()), std::min(microbatches, int(plan.stages.size())));
  for (const PlanStage& stage : plan.stages)
    for (const int rank : stage.ranks) {
      const int64_t memory_bytes = cluster.device(plan.device_of(rank)).memory_bytes;
      if (memory_bytes == 0) continue;
      int64_t held = 0, kept = 0;
      for (const int n : stage.nodes) {
        held += held_bytes(profile.nodes[size_t(n)].cost);
        kept += kept_bytes(profile.nodes[size_t(n)].cost);
      }
      const int64_t fit = kept > 0 ? (memory_bytes - held) / kept : microbatches;
      limits[size_t(rank)] = int(std::clamp<int64_t>(fit, 1, microbatches));
    }
  return limits;
}

double order_bound_s(const OrderClock& clock, const std::vector<int>& in_flight) {
  const int S = clock.stages(), M = clock.microbatches();
  const auto least_weight_s = [&](int s) {
    const StageTimes& t = clock.times(s);
    return std::max(0., std::min(t.weight_s, t.backward_s - t.input_s));
  };
  const auto least_input_s = [&](int s) {
    return std::min(clock.times(s).input_s, clock.times(s).backward_s);
  };
  // fill: the earliest begin. tail: from the end of a stage's last gradient to the end of the step.
  // trip: from the end of a micro-batch's forward to the begin of its input half.
  std::vector<double> fill(size_t(S), 0), tail(size_t(S), 0), trip(size_t(S), 0);
  for (int s = 0; s < S; ++s) {
    for (const Wire& w : clock.tensors())
      if (w.to == s)
        fill[size_t(s)] =
            std::max(fill[size_t(s)], fill[size_t(w.from)] + clock.times(w.from).forward_s + w.seconds);
    tail[size_t(s)] = least_weight_s(s) + clock.times(s).update_s;
    for (const Wire& w : clock.gradients())
      if (w.from == s)
        tail[size_t(s)] = std::max(tail[size_t(s)], w.seconds + least_input_s(w.to) + tail[size_t(w.to)]);
  }
  for (int s = S - 1; s >= 0; --s)
    for (const Wire& there : clock.tensors())
      for (const Wire& back : clock.gradients())
        if (there.from == s && back.to == s && back.from == there.to)
          trip[size_t(s)] =
              std::max(trip[size_t(s)], there.seconds + clock.times(there.to).forward_s +
                                            trip[size_t(there.to)] + least_input_s(there.to) + back.seconds);
  double bound_s = 0;
  for (int s = 0; s < S; ++s) {
    const StageTimes& t = clock.times(s);
    const double input_s = least_input_s(s), weight_s = least_weight_s(s);
    const int L = std::min(in_flight[size_t(s)], M), rounds = (M + L - 1) / L, before = (M - 1) % L;
    const double load_s = M * (t.forward_s + input_s + weight_s) + t.update_s;
    const double gradient_s = M * (t.forward_s + input_s) + (M - L) * weight_s + tail[size_t(s)];
    const double round_s = t.forward_s + trip[size_t(s)] + input_s;
    const double trips_s =
        before * t.forward_s + rounds * round_s + (rounds - 1) * weight_s + tail[size_t(s)];
    bound_s = std::max(bound_s, fill[size_t(s)] + std::max({load_s, gradient_s, trips_s}));
  }
  return bound_s * (1 - 1e-12);
}

PlannedOrder plan_order(const Profile& profile, const Plan& plan, const Cluster& cluster, int microbatches,
                        const std::vector<int>& in_flight) {
  if (std::ranges::any_of(in_flight, [](int n) { return n < 1; }))
    throw Error("a rank must have at least one micro-batch in flight", "allow more with --in-flight",
                ExitCode::usage);
  return OrderSearch(profile, plan, cluster, microbatches, in_flight).run();
}

}  // namespace antichain
