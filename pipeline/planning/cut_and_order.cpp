#include "pipeline/planning/cut_and_order.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "framework/error.h"
#include "partition/search/antichain_search.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/cut_climb.h"
#include "pipeline/planning/dispatch_search.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/order_bound.h"

namespace antichain {
namespace {

// Climbs may spend so much in every turn, in the unit of CutScorer::spent(). All budgets are for one stage a
// rank; there are more cuts and orders of several.
constexpr double for_several = 4;
constexpr int64_t turn_climb_budget = 2'000'000, turn_wander_budget = 4'000'000;
constexpr int64_t bound_cost = 300;  // of a bound, in that unit
constexpr double first_effort = 0.1, later_effort = 0.25;
constexpr int most_rounds = 3, most_rounds_of_several = 8;
constexpr size_t most_orders = 3;  // cuts whose order is searched at first
constexpr double near_slacks[] = {0, 0.01, 0.02, 0.05, 0.1};

class CutAndOrderSearch {
 public:
  CutAndOrderSearch(const Profile& profile, const PlanOptions& options, const Policy& policy,
                    const SearchLimits& limits)
      : profile_(profile),
        policy_(policy),
        options_(on_so_many(options, policy, options.stages)),
        by_device_(priced(one_device_a_stage(options_, policy))),
        limits_(limits),
        priced_(with_updates(profile, options.microbatches)),
        search_(priced_, by_device_),
        best_(search_.best()),
        score_(profile, options_, policy, *best_.dag, *best_.placements, search_.fitter()),
        climb_(score_) {}

  CutAndOrder run() {
    const auto start = std::chrono::steady_clock::now();
    if (options_.chunks == 1) by_bound();
    std::vector<ScoredCuts> found = candidates();
    if (found.empty())
      throw Error("no cut whose order can be searched fits the devices", "ask for more devices or memory",
                  ExitCode::usage);
    if (options_.chunks == 1)
      for_any_order(std::move(found));
    else
      by_rule(found.front().cuts);
    for (int round = 0; round < (more_ > 1 ? most_rounds_of_several : most_rounds); ++round) {
      const PlannedOrder before = result_->order;
      if (before.lacking_bytes == 0 && before.proved()) break;
      by_order(before.orders);
      const std::optional<Score> now = score_(cuts_);
      if (!now) break;
      const ScoredCuts better =
          climb_.wander(climb_.climb({cuts_, *now}, budget(turn_climb_budget)), budget(turn_wander_budget));
      try_order(better.cuts, before.orders, later_effort * more_);
      if (result_->order.lacking_bytes == before.lacking_bytes &&
          result_->order.pace_s() >= before.pace_s() * (1 - 1e-6))
        break;
    }
    result_->plan.planning_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return *result_;
  }

 private:
  void for_any_order(std::vector<ScoredCuts> found) {
    found.resize(std::min(most_orders, found.size()));
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = climb_.climb(found[i], budget(turn_climb_budget));
      if (i == 0) found[i] = climb_.wander(found[i], budget(turn_wander_budget));
    }
    for (const ScoredCuts& of : found) try_order(of.cuts, {}, first_effort * more_);
  }

  void by_rule(const Cuts& start) {
    const Plan plan = plan_of(start);
    DispatchSearch dispatch(
        score_, climb_,
        [this](const StageSums& sums, const Cuts& cuts) { return times(sums, devices(cuts)); },
        limits_.of_plan(plan), options_.steps);
    if (std::optional<DispatchSearch::Found> found = dispatch.anneal(start))
      try_order(found->at.cuts, std::move(found->orders), first_effort * more_);
    else
      try_order(start, {}, first_effort * more_);
  }

  // Returns the options for a search that counts updates.
  static PlanOptions priced(PlanOptions options) {
    options.cluster.profiles = with_updates(options.cluster.profiles, options.microbatches);
    return options;
  }

  Plan plan_of(const Cuts& cuts) const {
    return on_its_ranks(search_.plan_of({best_.dag, best_.placements, cuts, 0}), options_, policy_);
  }

  int64_t budget(int64_t of_one) const { return int64_t(double(of_one) * more_); }
  std::vector<int> devices(const Cuts& cuts) const {
    std::vector<int> device;
    if (options_.chunks > 1) {
      const Ranks ranks = ranks_of_stages(options_, policy_, int(cuts.moves.size()));
      for (const std::vector<int>& of_stage : ranks.of_stage)
        device.push_back(ranks.device[size_t(of_stage.front())]);
      return device;
    }
    for (const std::vector<int>& crew : best_.placements->devices(cuts.moves)) device.push_back(crew.front());
    return device;
  }
  PipelineTimes times(const StageSums& sums, const std::vector<int>& device) const {
    return pipeline_times(sums, options_.cluster, device, options_.microbatches);
  }

  void by_bound() {
    score_.score_by(
        [this](const StageSums& sums, const Cuts& cuts) {
          const std::vector<int> device = devices(cuts);
          return order_bound_s(OrderEstimate(times(sums, device)), limits_.of_stages(sums, device),
                               options_.steps);
        },
        bound_cost);
  }

  void by_order(const RankOrders& orders) {
    const int plays = options_.steps == Steps::apart ? 1 : 3;
    score_.score_by(
        [this, orders](const StageSums& sums, const Cuts& cuts) {
          estimate_.set(times(sums, devices(cuts)));
          return estimate_.pace_s(orders, options_.steps);
        },
        4 * plays * 3 * options_.stages * options_.chunks * options_.microbatches);
  }

  std::vector<ScoredCuts> candidates() {
    std::vector<ScoredCuts> found;
    const auto add = [&](const Cuts& cuts) {
      if (std::ranges::find(found, cuts, &ScoredCuts::cuts) != found.end()) return;
      if (const std::optional<Score> score = score_(cuts)) found.push_back({cuts, *score});
    };
    add(best_.cuts);
    for (const double slack : near_slacks)
      for (const TieRule rule : {TieRule::fewest_bytes, TieRule::most_even})
        add(search_.near(best_, rule, slack).cuts);
    std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.score < b.score; });
    return found;
  }

  // Searches the order of these cuts and keeps both where that is the best so far.
  void try_order(const Cuts& cuts, std::optional<RankOrders> start, double effort) {
    Plan plan = plan_of(cuts);
    PlannedOrder order =
        plan_order(profile_, plan, options_.cluster, options_.microbatches, limits_.of_plan(plan),
                   {.steps = options_.steps,
                    .effort = effort,
                    .start = std::move(start),
                    .by_formula = limits_.by_formula});
    const auto worth = [](const PlannedOrder& of) { return std::pair(of.lacking_bytes, of.pace_s()); };
    if (result_ && worth(order) >= worth(result_->order)) return;
    plan = finish_plan(profile_, options_, plan.stages, plan.method, plan.states);
    plan.step_s = order.step_s, plan.period_s = order.period_s;
    result_ = {std::move(plan), std::move(order)};
    cuts_ = cuts;
  }

  const Profile& profile_;
  const Policy policy_;
  const PlanOptions options_, by_device_;  // the second as if each stage had a device
  const double more_ = options_.chunks > 1 ? for_several : 1;
  const SearchLimits& limits_;
  const Profile priced_;
  AntichainSearch search_;
  const Solution best_;
  CutScorer score_;
  CutClimb climb_;
  OrderEstimate estimate_{PipelineTimes()};
  std::optional<CutAndOrder> result_;
  Cuts cuts_;  // of the result
};

}  // namespace

CutAndOrder cut_and_order(const Profile& profile, const PlanOptions& options, const Policy& policy,
                          const SearchLimits& limits) {
  return CutAndOrderSearch(profile, options, policy, limits).run();
}

}  // namespace antichain
