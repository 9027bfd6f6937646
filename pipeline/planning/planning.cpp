#include "pipeline/planning/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/search/antichain_search.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/memory_fit.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

// Returns, of the plans with the smallest bottleneck, that of the tie rule with the shorter step or period.
// On links that take time, fewer bytes are not always better than more even stages.
Plan plan_by_bottleneck(const Profile& profile, const PlanOptions& options, const Policy& policy,
                        const StageFitter& fitter) {
  const PlanOptions by_stage = one_device_a_stage(options, policy);
  AntichainSearch search(profile, by_stage, &fitter);
  const Solution best = search.best();
  const auto plan_of = [&](const Solution& solution) {
    Plan plan = on_its_ranks(search.plan_of(solution), options, policy);
    set_pace(plan, profile, options, policy);
    return plan;
  };
  const Plan chosen = plan_of(best), even = plan_of(search.near(best, TieRule::most_even, 0));
  const auto length_s = [&](const Plan& plan) {
    return options.objective == Objective::period ? plan.period_s : plan.step_s;
  };
  return length_s(even) < length_s(chosen) ? even : chosen;
}

// Returns the plan with the shorter period: that of the smallest bottleneck, which is what limits a full
// pipeline, or that of the shortest step.
Plan plan_by_period(const Profile& profile, const PlanOptions& options, const Policy& policy,
                    const StageFitter& fitter) {
  Plan even = plan_by_bottleneck(profile, options, policy, fitter),
       fast = plan_makespan(profile, options, policy, fitter);
  set_pace(fast, profile, options, policy);
  const int64_t even_lacks = lacking_bytes(even, profile, options, policy),
                fast_lacks = lacking_bytes(fast, profile, options, policy);
  Plan plan = std::tie(even_lacks, even.period_s) < std::tie(fast_lacks, fast.period_s) ? even : fast;
  if (options.chunks == 1) plan.lower_bound_s = but_for_rounding(fast.lower_bound_s, plan.period_s);
  return plan;
}

}  // namespace

void check_policy(const Policy& policy, const PlanOptions& options) {
  if (!policy.trains)
    throw Error(fmt::format("plans are for training, and the schedule {} has no backwards", policy.name),
                "choose " + training_policies_in_words(), ExitCode::usage);
  policy.check_microbatches(options.microbatches, options.stages);
  if (options.chunks > 1 && !options.replicas.off())
    throw Error(fmt::format("the schedule {} has {} stages a rank, and replicas were asked for, too",
                            policy.name, options.chunks),
                "leave out --replicas, or choose a schedule of one stage a rank", ExitCode::usage);
}

void set_pace(Plan& plan, const Profile& profile, const PlanOptions& options, const Policy& policy) {
  const Pace its = pace(profile, plan, policy, options.microbatches, options.cluster, options.steps);
  plan.step_s = its.step_s, plan.period_s = its.period_s;
}

Plan plan_network(const Profile& profile, const PlanOptions& options, Method method, const Policy& policy) {
  check_policy(policy, options);
  if (method == Method::antichain) check_kinds(options, profile);
  const bool by_step = of_a_step(options.objective), exact = method == Method::antichain;
  PlanOptions asked = on_so_many(options, policy, options.stages);
  if (!exact) asked.together.clear();  // the others cut anywhere
  const bool several = asked.chunks > 1;
  asked.recompute = options.recompute && !several;  // where stages share a device, once they are cut
  const auto start = std::chrono::steady_clock::now();
  const StageFitter fitter(profile, asked.shard_optimiser, asked.cluster);
  Plan plan = !exact                                 ? plan_by(method, profile, asked, policy, fitter)
              : asked.objective == Objective::period ? plan_by_period(profile, asked, policy, fitter)
              : by_step                              ? plan_makespan(profile, asked, policy, fitter)
                                                     : plan_by_bottleneck(profile, asked, policy, fitter);
  if (several) {  // a planner priced each stage as one with a device of its own
    const PlanOptions on_ranks = on_so_many(asked, policy, plan.ranks());
    plan = finish_plan(profile, on_ranks, plan.stages, plan.method, plan.states);
    if (options.recompute) make_fit(plan, profile, on_ranks, fitter);
  }
  const auto end = std::chrono::steady_clock::now();
  plan.planning_s = std::chrono::duration<double>(end - start).count();
  if (asked.beside_bytes.empty()) check_formula(plan, asked.cluster);
  set_pace(plan, profile, asked, policy);
  if (by_step && !exact && !several) {
    // The method data-parallel replicates even where replicas are off.
    if (has_replicas(plan) && asked.replicas.off()) asked.replicas.automatic = true;
    plan.lower_bound_s = but_for_rounding(pace_bound_s(profile, asked, policy.halves), plan.objective_s());
  }
  return plan;
}

}  // namespace antichain
