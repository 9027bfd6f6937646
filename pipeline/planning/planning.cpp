#include "pipeline/planning/planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/planners/planner.h"
#include "partition/search/antichain_search.h"
#include "pipeline/planning/makespan.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

constexpr std::string_view makespan = "makespan";

void check_objective(const std::string& objective) {
  const std::vector<std::string> names = objective_names();
  if (std::find(names.begin(), names.end(), objective) == names.end())
    throw Error(fmt::format("there is no objective called \"{}\"", objective),
                fmt::format("choose one of {}", fmt::join(names, ", ")), ExitCode::usage);
}

InFlight in_flight_of(Policy policy) {
  switch (policy) {
    case Policy::one_f_one_b:
      return InFlight::one_f_one_b;
    case Policy::gpipe:
      return InFlight::all;
    case Policy::forward_only:
      break;
  }
  throw Error(fmt::format("plans are for training, and the schedule {} has no backwards", name_of(policy)),
              "choose 1f1b or gpipe", ExitCode::usage);
}

void check_memory(const Plan& plan, const Cluster& cluster) {
  const int s = stage_that_does_not_fit(plan, cluster);
  if (s < 0) return;
  int64_t limit = 0, most = 0;
  for (int rank : plan.stages[size_t(s)].ranks)
    if (const int64_t bytes = cluster.device(plan.device_of(rank)).memory_bytes; bytes > 0)
      limit = limit > 0 ? std::min(limit, bytes) : bytes;
  for (const PlanStage& stage : plan.stages) most = std::max(most, stage.memory_bytes);
  throw Error(
      fmt::format(
          "stage {} of the plan by {} needs {} bytes, but its device has {}: this split needs {} bytes on "
          "each device",
          s, plan.method, plan.stages[size_t(s)].memory_bytes, limit, most),
      "use larger devices or more of them, or the method antichain, which looks for a split that fits");
}

// data-parallel replicates even where replicas are off.
PlanOptions options_behind(const Plan& plan, PlanOptions options) {
  const auto replicated = [](const PlanStage& stage) { return stage.ranks.size() > 1; };
  if (std::any_of(plan.stages.begin(), plan.stages.end(), replicated) && options.replicas.off())
    options.replicas.automatic = true;
  return options;
}

// Of the plans with the smallest bottleneck, that of the tie rule with the shorter step: on links that take
// time, fewer bytes are not always better than more even stages.
Plan plan_by_bottleneck(const Profile& profile, const PlanOptions& options, Policy policy) {
  const auto start = Clock::now();
  AntichainSearch search(profile, options);
  const Solution best = search.best();
  Plan chosen = search.plan(best, start);
  const auto step = [&](const Plan& plan) {
    return step_s(profile, plan, policy, options.microbatches, options.cluster);
  };
  chosen.step_s = step(chosen);
  Plan even = search.plan(search.near(best, TieRule::most_even, 0), start);
  even.step_s = step(even);
  return even.step_s < chosen.step_s ? even : chosen;
}

}  // namespace

std::vector<std::string> objective_names() {
  return {"compute", "compute-or-transfer", std::string(makespan)};
}

Plan plan_network(const Profile& profile, const PlanOptions& options, std::string_view method,
                  Policy policy) {
  check_objective(options.objective);
  const Planner own = planner(method);
  const bool by_step = options.objective == makespan;
  PlanOptions asked = options;
  asked.in_flight = in_flight_of(policy);
  if (by_step) asked.objective = "compute-or-transfer";
  if (by_step && method == "antichain") return plan_makespan(profile, asked, policy);
  Plan plan = method == "antichain" ? plan_by_bottleneck(profile, asked, policy) : own(profile, asked);
  check_memory(plan, asked.cluster);
  plan.step_s = step_s(profile, plan, policy, asked.microbatches, asked.cluster);
  if (by_step) {
    plan.objective = makespan;
    plan.lower_bound_s =
        but_for_rounding(makespan_bound_s(profile, options_behind(plan, asked)), plan.step_s);
  }
  return plan;
}

}  // namespace antichain
