#include "pipeline/planning/order_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"
#include "pipeline/planning/greedy_order.h"
#include "pipeline/planning/memory_fit.h"
#include "pipeline/planning/order_bound.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

constexpr int64_t most_actions = 8'000'000, most_orders_timed = 200'000;  // that are timed, in all
constexpr int most_starts = 3;
// These are shares of a step that an exchange may lose, at first and at last. An exchange changes more of a
// step in which ranks do little.
constexpr double hot_of_an_action = 0.09, least_hot = 0.002, most_hot = 0.01, cold = 1e-5;
constexpr double rounding_of_paces = 1e-12;
constexpr double step_of_bests = 1e-3;  // orders that are kept while one improves; the best may not fit
constexpr double infinite_s = std::numeric_limits<double>::infinity();

bool begins_gradient(Verb verb) { return verb == Verb::backward || verb == Verb::backward_input; }
bool ends(Verb verb) { return verb == Verb::backward || verb == Verb::backward_weight; }

struct Candidate {
  RankOrders orders;
  double pace_s = infinite_s;               // the step's length, or the period
  std::vector<int64_t> lacking_bytes = {};  // by rank of the plan; empty without limits of memory

  int64_t lacking() const { return std::reduce(lacking_bytes.begin(), lacking_bytes.end()); }
  bool operator<(const Candidate& other) const {
    return std::pair(lacking(), pace_s) < std::pair(other.lacking(), other.pace_s);
  }
};

class OrderSearch {
 public:
  OrderSearch(const Profile& profile, const Plan& plan, const Cluster& cluster, int microbatches,
              const std::vector<int>& in_flight, const OrderRequest& request)
      : profile_(profile),
        plan_(plan),
        cluster_(cluster),
        steps_(request.steps),
        by_formula_(request.by_formula),
        memo_(request.memo),
        asked_{pipeline_times(profile, plan, cluster, microbatches), {}, {}, request.steps},
        estimate_(asked_.times),
        ranks_(size_t(estimate_.ranks())) {
    for (int s = 0; s < estimate_.stages(); ++s)
      ranks_[size_t(estimate_.rank_of(s))] = plan.stages[size_t(s)].ranks.front();
    for (const int rank : ranks_) in_flight_.push_back(in_flight.at(size_t(rank)));
    set_limits();
    bound_s_ = order_bound_s(estimate_, in_flight_, steps_);
    const int64_t orders = 3 * most_orders_timed * int64_t(estimate_.stages()) * estimate_.microbatches();
    budget_ = int64_t(double(std::min(most_actions, orders)) * request.effort);
    begin_ = request.start;
  }

  PlannedOrder run() {
    if (const RankOrders* known = memo_ ? memo_->find(asked_) : nullptr) return finish(*known);
    const Candidate best = search();
    if (memo_) memo_->keep(asked_, best.orders);
    return finish(best.orders);
  }

 private:
  void set_limits() {
    std::vector<StageSum> of_rank(ranks_.size()), of_stage;
    std::vector<int> stages(ranks_.size(), 0);
    for (size_t s = 0; s < plan_.stages.size(); ++s) {
      of_stage.push_back(sum_of(profile_, plan_.stages[s].nodes, plan_.stages[s].recomputed));
      of_rank[size_t(estimate_.rank_of(int(s)))].add(of_stage.back());
      ++stages[size_t(estimate_.rank_of(int(s)))];
    }
    const auto by_bytes = [&](size_t rank) {
      return stages[rank] > 1 && cluster_.device(plan_.device_of(ranks_[rank])).memory_bytes > 0;
    };
    for (size_t s = 0; s < plan_.stages.size(); ++s)
      limits_.takes.push_back(by_bytes(size_t(estimate_.rank_of(int(s)))) ? of_stage[s].kept_bytes : 1);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const int64_t room = cluster_.device(plan_.device_of(ranks_[r])).memory_bytes - of_rank[r].held_bytes -
                           of_rank[r].again_bytes;
      limits_.most.push_back(by_bytes(r) ? std::min(room, in_flight_[r] * of_rank[r].kept_bytes)
                                         : int64_t(in_flight_[r]) * stages[r]);
      limits_.of_each_stage.push_back(by_bytes(r));
    }
    asked_.most_in_flight = limits_.most;
    for (const int rank : cluster_.limits_memory() ? ranks_ : std::vector<int>())
      asked_.memory_bytes.push_back(cluster_.device(plan_.device_of(rank)).memory_bytes);
  }

  Candidate search() {
    start();
    if (starts_.empty())
      throw Error(fmt::format("no order of {} micro-batches keeps {} in flight on the ranks",
                              estimate_.microbatches(), fmt::join(in_flight_, ", ")),
                  "allow more with --in-flight", ExitCode::usage);
    Candidate least = starts_.front();
    while (!starts_.empty() && starts_.front().lacking() > 0 && lower_limits(starts_.front())) {
      start();
      if (!starts_.empty() && starts_.front() < least) least = starts_.front();
    }
    if (least.lacking() > 0) return least;
    const int count = std::min(most_starts, int(starts_.size()));
    Candidate best = starts_.front();
    for (int i = 0; i < count && starts_[size_t(i)].lacking() == 0 && !proved(best.pace_s); ++i) {
      Candidate found = improve(starts_[size_t(i)], (budget_ - estimate_.timed()) / (count - i));
      if (found.pace_s < best.pace_s) best = std::move(found);
    }
    return best;
  }

  bool proved(double pace_s) const { return pace_s <= bound_s_ * (1 + rounding_of_paces); }

  // Gives ranks that lack memory less in flight. Returns false where they have the least already.
  bool lower_limits(const Candidate& lacks) {
    bool lowered = false;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const int64_t bytes = lacks.lacking_bytes[size_t(ranks_[r])];
      const int64_t less = limits_.of_each_stage[r] ? bytes : std::min<int64_t>(bytes, 1);
      if (less == 0 || limits_.most[r] <= less) continue;
      limits_.most[r] -= less;
      lowered = true;
    }
    return lowered;
  }

  void start() {
    starts_.clear();
    add(begin_);
    for (const Policy& policy : policies())
      if (policy.trains && !policy.asynchronous()) add(orders_of(policy));
    add_greedy({});
    std::stable_sort(starts_.begin(), starts_.end());
    if (steps_ == Steps::apart || starts_.empty()) return;
    for (int again = 0; again < 2; ++again) {  // greedy from where stages begin in the steady state
      time(starts_.front().orders);
      std::vector<double> begins_s = estimate_.begins_s();
      const double first_s = std::ranges::min(begins_s);
      for (double& s : begins_s) s -= first_s;
      add_greedy(begins_s);
      std::stable_sort(starts_.begin(), starts_.end());
    }
  }

  void add_greedy(const std::vector<double>& begins_s) {
    for (const bool gradients_first : {true, false})
      for (const double patience : {0., 0.5, 1.})
        if (greedy_.play(estimate_, limits_, even_rule(estimate_, gradients_first, patience), begins_s))
          add(greedy_.orders());
  }

  std::optional<RankOrders> orders_of(const Policy& policy) const {
    std::vector<std::vector<int>> ranks;
    for (const PlanStage& stage : plan_.stages) ranks.push_back(stage.ranks);
    ComputeOrders made;
    try {
      made = policy.compute_orders(seats(ranks, estimate_.microbatches()));
    } catch (const Error&) {  // it is for other placements, or numbers of micro-batches
      return std::nullopt;
    }
    RankOrders orders(ranks_.size());
    for (const ComputeOrder& of_rank : made)
      for (const Action& a : of_rank.actions)
        orders[size_t(estimate_.rank_of(a.stage))].push_back({a.verb, a.stage, a.microbatch});
    return orders;
  }

  void add(const std::optional<RankOrders>& orders) {
    if (!orders) return;
    for (size_t r = 0; r < orders->size(); ++r)
      if (!limits_.keep(int(r), (*orders)[r])) return;
    Candidate candidate{*orders, time(*orders)};
    if (candidate.pace_s == infinite_s) return;
    join_halves(candidate);
    candidate.lacking_bytes = lacking_bytes(candidate.orders);
    starts_.push_back(std::move(candidate));
  }

  double time(const RankOrders& orders) { return estimate_.pace_s(orders, steps_); }

  // Makes an I and the W behind it one B wherever the time does not grow, while a third of the budget lasts.
  void join_halves(Candidate& candidate) {
    for (size_t r = 0; r < candidate.orders.size(); ++r)
      for (size_t i = candidate.orders[r].size(); i-- > 1;) {
        if (!joinable(candidate.orders[r], i)) continue;
        if (estimate_.timed() > budget_ / 3) return;
        RankOrders joined = candidate.orders;
        join(joined[r], i);
        if (const double pace_s = time(joined); pace_s <= candidate.pace_s * (1 + rounding_of_paces))
          candidate.orders = std::move(joined), candidate.pace_s = pace_s;
      }
  }
  static bool joinable(const RankOrder& order, size_t i) {
    return order[i].verb == Verb::backward_weight && order[i - 1].verb == Verb::backward_input &&
           order[i].stage == order[i - 1].stage && order[i].microbatch == order[i - 1].microbatch;
  }
  static void join(RankOrder& order, size_t i) {
    order[i - 1].verb = Verb::backward;
    order.erase(order.begin() + int(i));
  }

  // Exchanges the action at i and the one before, unless one needs the other or the limits forbid it.
  bool exchange(int rank, RankOrder& order, size_t i) const {
    const auto [first, stage, m] = order[i - 1];
    const auto [second, other_stage, n] = order[i];
    if (stage == other_stage && (first == second || (begins_gradient(first) && begins_gradient(second)) ||
                                 (ends(first) && ends(second)) || m == n))
      return false;  // micro-batches stay in order
    const bool halves = first == Verb::backward_weight || second == Verb::backward_weight;
    if (m == n && !halves) return false;  // a micro-batch goes from stage to stage
    std::swap(order[i - 1], order[i]);
    if (!(ends(first) && second == Verb::forward) || limits_.keep(rank, order)) return true;
    std::swap(order[i - 1], order[i]);
    return false;
  }

  // Changes the orders somewhere on the critical path, or now and then anywhere. Returns whether there was
  // anything to change.
  bool change(RankOrders& orders, const std::vector<OrderEstimate::At>& path) {
    for (int tries = 0; tries < 8; ++tries) {
      const size_t k = random_() % path.size();
      const auto [rank, index] = path[k];
      const bool follows = k + 1 < path.size() && path[k + 1].rank == rank && path[k + 1].index == index - 1;
      if (change_at(orders[size_t(rank)], rank, size_t(index), follows)) return true;
    }
    if (steps_ == Steps::apart) return false;
    const int rank = int(random_() % orders.size());
    RankOrder& order = orders[size_t(rank)];
    const size_t index = random_() % order.size();
    return change_at(order, rank, index, index > 0);
  }

  // Parts a B now and then, or exchanges the action with the one before, or makes the two of them a B.
  bool change_at(RankOrder& order, int rank, size_t i, bool with_the_one_before) {
    if (order[i].verb == Verb::backward && random_() % 4 == 0) {
      order[i].verb = Verb::backward_input;
      order.insert(order.begin() + int64_t(i) + 1,
                   {Verb::backward_weight, order[i].stage, order[i].microbatch});
      return true;
    }
    if (!with_the_one_before) return false;
    if (joinable(order, i)) {
      join(order, i);
      return true;
    }
    return exchange(rank, order, i);
  }

  Candidate improve(const Candidate& from, int64_t share) {
    Candidate now = from;
    std::vector<Candidate> bests = {from};  // each better than the one before
    const int64_t begin = estimate_.timed();
    int64_t idle = 0;
    std::uniform_real_distribution<double> unit(0, 1);
    const double actions = 3. * estimate_.stages() * estimate_.microbatches() / estimate_.ranks();
    const double hot = std::clamp(hot_of_an_action / actions, least_hot, most_hot);
    time(now.orders);
    std::vector<OrderEstimate::At> path = estimate_.critical_path();
    while (estimate_.timed() + idle - begin < share && !proved(bests.back().pace_s)) {
      const double done = double(estimate_.timed() + idle - begin) / double(share);
      const double heat_s = from.pace_s * hot * std::pow(cold / hot, done);
      RankOrders changed = now.orders;
      if (!change(changed, path)) {
        idle += 1000;
        continue;
      }
      const double pace_s = time(changed);
      if (pace_s > now.pace_s && !(unit(random_) < std::exp((now.pace_s - pace_s) / heat_s))) continue;
      now.orders = std::move(changed), now.pace_s = pace_s;
      path = estimate_.critical_path();
      if (pace_s >= bests.back().pace_s * (1 - rounding_of_paces)) continue;
      if (bests.size() > 1 && pace_s > bests[bests.size() - 2].pace_s * (1 - step_of_bests))
        bests.back() = now;
      else
        bests.push_back(now);
    }
    while (bests.size() > 1 && !fits(bests.back().orders)) bests.pop_back();
    return bests.back();
  }

  std::vector<int64_t> lacking_bytes(const RankOrders& orders) const {
    if (by_formula_ || !cluster_.limits_memory()) return {};
    return antichain::lacking_bytes(schedule_of(orders), plan_, profile_, cluster_);
  }
  bool fits(const RankOrders& orders) const {
    const std::vector<int64_t> bytes = lacking_bytes(orders);
    return std::reduce(bytes.begin(), bytes.end()) == 0;
  }

  Schedule schedule_of(const RankOrders& best) const {
    const Crossing crossing = crossing_of(profile_, plan_);
    const Seats seats = antichain::seats(crossing.ranks, estimate_.microbatches());
    ComputeOrders orders(seats.size());
    for (size_t r = 0; r < best.size(); ++r)
      for (const Computing& c : best[r])
        orders[size_t(ranks_[r])].actions.push_back({c.verb, c.stage, c.microbatch});
    return complete(orders, crossing, seats, estimate_.microbatches());
  }

  PlannedOrder finish(const RankOrders& best) const {
    PlannedOrder planned{.schedule = schedule_of(best), .orders = best, .steps = steps_, .bound_s = bound_s_};
    for (const int64_t bytes : lacking_bytes(best)) planned.lacking_bytes += bytes;
    const Timeline timeline = simulate(planned.schedule, plan_, profile_, cluster_, steps_);
    planned.step_s = timeline.step_s, planned.period_s = timeline.period_s;
    planned.bound_s = std::min(planned.bound_s, planned.pace_s());  // but for rounding
    return planned;
  }

  const Profile& profile_;
  const Plan& plan_;
  const Cluster& cluster_;
  const Steps steps_;
  const bool by_formula_;
  OrderMemo* const memo_;
  OrderMemo::Asked asked_;
  OrderEstimate estimate_;
  GreedyOrder greedy_;
  std::vector<int> ranks_;      // of the plan, as PipelineTimes numbers them
  std::vector<int> in_flight_;  // by these
  InFlightLimits limits_;
  std::optional<RankOrders> begin_;  // one more order to start from
  double bound_s_ = 0;
  std::vector<Candidate> starts_;
  std::mt19937_64 random_{1};
  int64_t budget_ = 0;  // actions that are timed
};

}  // namespace

int default_in_flight(int ranks, int microbatches, int64_t memory_bytes, int64_t held_bytes,
                      int64_t kept_bytes) {
  if (memory_bytes == 0) return std::min(microbatches, ranks);
  const int64_t fit = kept_bytes > 0 ? (memory_bytes - held_bytes) / kept_bytes : microbatches;
  return int(std::clamp<int64_t>(fit, 1, microbatches));
}

std::vector<int> default_in_flight(const Profile& profile, const Plan& plan, const Cluster& cluster,
                                   int microbatches) {
  std::vector<int> limits(size_t(plan.ranks()), microbatches);
  for (const PlanStage& stage : plan.stages)
    for (const int rank : stage.ranks) {
      const int64_t memory_bytes = cluster.device(plan.device_of(rank)).memory_bytes;
      if (memory_bytes > 0 && has_several_stages_a_rank(plan)) continue;  // the search counts bytes
      const StageSum sum = sum_of(profile, stage.nodes, stage.recomputed);
      limits[size_t(rank)] = default_in_flight(plan.ranks(), microbatches, memory_bytes,
                                               sum.held_bytes + sum.again_bytes, sum.kept_bytes);
    }
  return limits;
}

const RankOrders* OrderMemo::find(const Asked& asked) const {
  const auto at = std::ranges::find(found_, asked, &std::pair<Asked, RankOrders>::first);
  return at == found_.end() ? nullptr : &at->second;
}

void OrderMemo::keep(Asked asked, RankOrders orders) {
  found_.emplace_back(std::move(asked), std::move(orders));
}

PlannedOrder plan_order(const Profile& profile, const Plan& plan, const Cluster& cluster, int microbatches,
                        const std::vector<int>& in_flight, const OrderRequest& request) {
  if (std::ranges::any_of(in_flight, [](int n) { return n < 1; }))
    throw Error("a rank must have at least one micro-batch in flight", "allow more with --in-flight",
                ExitCode::usage);
  return OrderSearch(profile, plan, cluster, microbatches, in_flight, request).run();
}

}  // namespace antichain
