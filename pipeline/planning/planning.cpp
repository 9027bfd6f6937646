#include "pipeline/planning/planning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/planners/planner.h"
#include "partition/search/antichain_search.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/makespan.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

void check_trains(const Policy& policy) {
  if (policy.trains) return;
  throw Error(fmt::format("plans are for training, and the schedule {} has no backwards", policy.name),
              "choose " + training_policies_in_words(), ExitCode::usage);
}

void check_memory(const Plan& plan, const Cluster& cluster) {
  const int rank = rank_that_does_not_fit(plan, cluster);
  if (rank < 0) return;
  const std::vector<int> stages = stages_of_rank(plan, rank);
  const bool one = stages.size() == 1;
  int64_t most = 0;
  for (int r = 0; r < plan.ranks(); ++r) most = std::max(most, memory_of_rank(plan, r));
  throw Error(
      fmt::format("{} {} of the plan by {} {} {} bytes, but {} device has {}: this split needs {} bytes on "
                  "each device",
                  one ? "stage" : "stages", fmt::join(stages, " and "), plan.method, one ? "needs" : "need",
                  memory_of_rank(plan, rank), one ? "its" : "their",
                  cluster.device(plan.device_of(rank)).memory_bytes, most),
      "use larger devices or more of them, or plan by the method antichain, which looks for a split that "
      "fits");
}

// The method data-parallel replicates even where replicas are off.
PlanOptions options_behind(const Plan& plan, PlanOptions options) {
  if (has_replicas(plan) && options.replicas.off()) options.replicas.automatic = true;
  return options;
}

void set_pace(Plan& plan, const Profile& profile, const PlanOptions& options, const Policy& policy) {
  const Pace its = pace(profile, plan, policy, options.microbatches, options.cluster, options.steps);
  plan.step_s = its.step_s, plan.period_s = its.period_s;
}

// Returns, of the plans with the smallest bottleneck, that of the tie rule with the shorter step or period.
// On links that take time, fewer bytes are not always better than more even stages.
Plan plan_by_bottleneck(const Profile& profile, const PlanOptions& options, const Policy& policy) {
  const auto start = std::chrono::steady_clock::now();
  const PlanOptions by_stage = one_device_a_stage(options, policy);
  AntichainSearch search(profile, by_stage);
  const Solution best = search.best();
  const auto plan_of = [&](const Solution& solution) {
    Plan plan = on_its_ranks(search.plan(solution, start), options, policy);
    set_pace(plan, profile, options, policy);
    return plan;
  };
  const Plan chosen = plan_of(best), even = plan_of(search.near(best, TieRule::most_even, 0));
  const auto length_s = [&](const Plan& plan) {
    return options.objective == Objective::period ? plan.period_s : plan.step_s;
  };
  return length_s(even) < length_s(chosen) ? even : chosen;
}

// Returns the bound that holds for any plan and any order, as the objective counts.
double bound_of_any_plan_s(const Profile& profile, const PlanOptions& options, bool halves) {
  return options.objective == Objective::period ? period_bound_s(profile, options)
                                                : makespan_bound_s(profile, options, halves);
}

// Returns the plan with the shorter period: that of the smallest bottleneck, which is what limits a full
// pipeline, or that of the shortest step.
Plan plan_by_period(const Profile& profile, const PlanOptions& options, const Policy& policy) {
  Plan even = plan_by_bottleneck(profile, options, policy), fast = plan_makespan(profile, options, policy);
  set_pace(fast, profile, options, policy);
  const int64_t even_lacks = lacking_bytes(even, options.cluster),
                fast_lacks = lacking_bytes(fast, options.cluster);
  Plan plan = std::tie(even_lacks, even.period_s) < std::tie(fast_lacks, fast.period_s) ? even : fast;
  if (options.chunks == 1) plan.lower_bound_s = but_for_rounding(fast.lower_bound_s, plan.period_s);
  return plan;
}

// A planner priced each stage as one with a device of its own.
Plan priced_by_rank(const Plan& plan, const Profile& profile, const PlanOptions& options,
                    const Policy& policy) {
  Plan priced = finish_plan(profile, on_so_many(options, policy, plan.ranks()), plan.stages, plan.method,
                            plan.states, {});
  priced.planning_s = plan.planning_s;
  return priced;
}

// Returns what the planner is asked for that is to bound a given plan: as many devices, shared out alike. The
// plan may cut anywhere.
PlanOptions options_for(const Plan& plan, PlanOptions options) {
  options.stages = plan.ranks();
  options.replicas = {.automatic = has_replicas(plan)};
  options.at_most = false;
  options.together.clear();
  return options;
}

// A gap means the same for a plan from a file and for one that is made here: it is above the bound that the
// exact planner proves for the objective. Where that planner refuses, the bound that needs no search stays.
// It also stays where a rank has several stages: that planner gives each rank one.
void bound_by_search(Plan& plan, const Profile& profile, const PlanOptions& options, const Policy& policy) {
  if (has_several_stages_a_rank(plan)) return;
  try {
    const Plan exact = plan_network(profile, options, Method::antichain, policy);
    plan.lower_bound_s = but_for_rounding(exact.lower_bound_s, plan.objective_s());
    plan.states = exact.states;
    plan.planning_s = exact.planning_s;
  } catch (const Error& error) {
    if (error.code() == ExitCode::failure) throw;
  }
}

// A schedule from a file is no policy, so the planner has no best step for it. The bound of any order that
// trains holds where each rank has one stage; no bound is known for an evaluation.
void bound_step_of(const Schedule& schedule, Plan& plan, const Profile& profile, const PlanOptions& options) {
  if (!learns(schedule))
    plan.lower_bound_s = 0;
  else if (!has_several_stages_a_rank(plan))
    plan.lower_bound_s =
        but_for_rounding(bound_of_any_plan_s(profile, options, has_halves(schedule)), plan.objective_s());
}

}  // namespace

double bound_of_any_order_s(const Profile& profile, const PlanOptions& options) {
  return bound_of_any_plan_s(profile, options, true);
}

void check_policy(const Policy& policy, const PlanOptions& options) {
  check_trains(policy);
  policy.check_microbatches(options.microbatches, options.stages);
  if (options.chunks > 1 && !options.replicas.off())
    throw Error(fmt::format("the schedule {} has {} stages a rank, and replicas were asked for, too",
                            policy.name, options.chunks),
                "leave out --replicas, or choose a schedule of one stage a rank", ExitCode::usage);
}

Plan plan_network(const Profile& profile, const PlanOptions& options, Method method, const Policy& policy) {
  check_policy(policy, options);
  const bool by_step = of_a_step(options.objective);
  PlanOptions asked = on_so_many(options, policy, options.stages);
  if (method != Method::antichain) asked.together.clear();  // the others cut anywhere
  Plan plan;
  if (method != Method::antichain)
    plan = on_its_ranks(planner(method)(profile, one_device_a_stage(asked, policy)), asked, policy);
  else if (asked.objective == Objective::period)
    plan = plan_by_period(profile, asked, policy);
  else
    plan = by_step ? plan_makespan(profile, asked, policy) : plan_by_bottleneck(profile, asked, policy);
  if (asked.chunks > 1) plan = priced_by_rank(plan, profile, asked, policy);
  check_memory(plan, asked.cluster);
  set_pace(plan, profile, asked, policy);
  if (by_step && method != Method::antichain && asked.chunks == 1)
    plan.lower_bound_s = but_for_rounding(
        bound_of_any_plan_s(profile, options_behind(plan, asked), policy.halves), plan.objective_s());
  return plan;
}

Plan price_plan(const Profile& profile, const Plan& given, const PlanOptions& options, const Policy& policy,
                const std::optional<Schedule>& schedule) {
  check_trains(policy);
  PlanOptions asked = options_for(given, options);
  asked.chunks = std::max(1, int(given.stages.size()) / given.ranks());
  Pace predicted;
  if (schedule) {
    const Timeline timeline = simulate(*schedule, given, profile, asked.cluster, asked.steps);
    predicted = {timeline.step_s, timeline.period_s};
  } else {
    predicted = pace(profile, given, policy, asked.microbatches, asked.cluster, asked.steps);
  }
  asked = on_so_many(asked, policy, given.ranks());
  const auto start = std::chrono::steady_clock::now();
  Plan plan = finish_plan(profile, asked, given.stages, given.method, 0, start);
  plan.planning_s = 0;
  plan.step_s = predicted.step_s, plan.period_s = predicted.period_s;
  check_memory(plan, asked.cluster);
  if (schedule && of_a_step(options.objective))
    bound_step_of(*schedule, plan, profile, asked);
  else
    bound_by_search(plan, profile, asked, policy);
  return plan;
}

}  // namespace antichain
