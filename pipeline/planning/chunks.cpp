#include "pipeline/planning/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/plan/plan_price.h"
#include "partition/planners/planner.h"
#include "partition/search/recompute_search.h"

namespace antichain {
namespace {

// Returns devices of the cluster, the fastest first where there are more than are used.
std::vector<int> used_devices(const Cluster& cluster, int ranks) {
  if (int(cluster.devices.size()) > ranks) return cluster.fastest(ranks);
  std::vector<int> devices(static_cast<size_t>(ranks));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

// The stages stay as they are, and those that do not fit recompute what makes them fit, if anything does.
void make_fit(Plan& plan, const Profile& profile, const PlanOptions& options) {
  const StageFitter fitter(profile, options.shard_optimiser);
  const std::vector<StagePrice> prices = price(plan, profile, options);
  for (size_t s = 0; s < prices.size(); ++s) {
    PlanStage& stage = plan.stages[s];
    const StageSeat seat{prices[s].in_flight, prices[s].devices, prices[s].limit_bytes, prices[s].speed};
    if (const std::optional<RecomputeChoice>& choice = fitter.fit(stage.nodes, seat))
      stage.recomputed = choice->of(stage.nodes);
  }
  plan = finish_plan(profile, options, std::move(plan.stages), plan.method, plan.states);
}

}  // namespace

PlanOptions on_so_many(const PlanOptions& options, const Policy& policy, int ranks) {
  PlanOptions asked = options;
  asked.in_flight = policy.in_flight_on(ranks, options.chunks, options.microbatches);
  if (const int most = options.most_in_flight; most > 0)
    asked.in_flight = [most, rule = std::move(asked.in_flight)](const PipelinePlace& place) {
      return std::min(most, rule(place));
    };
  return asked;
}

PlanOptions one_device_a_stage(const PlanOptions& options, const Policy& policy) {
  if (options.chunks == 1) return options;
  PlanOptions asked = on_so_many(options, policy, options.stages);
  asked.stages = options.stages * options.chunks;
  asked.chunks = 1;
  asked.at_most = false;
  asked.cluster = one_link(options.cluster.link(used_devices(options.cluster, options.stages)));
  return asked;
}

Ranks ranks_of_stages(const PlanOptions& options, const Policy& policy, int stages) {
  const int ranks = stages / options.chunks;
  Ranks found{.device = used_devices(options.cluster, ranks)};
  for (int s = 0; s < stages; ++s) found.of_stage.push_back({position_of_stage(policy.placement, s, ranks)});
  return found;
}

Plan plan_by(Method method, const Profile& profile, const PlanOptions& options, const Policy& policy) {
  Plan plan = planner(method)(profile, one_device_a_stage(options, policy));
  if (options.recompute) make_fit(plan, profile, options);
  return on_its_ranks(std::move(plan), options, policy);
}

Plan on_its_ranks(Plan plan, const PlanOptions& options, const Policy& policy) {
  if (options.chunks == 1) return plan;
  const int stages = int(plan.stages.size());
  if (has_replicas(plan) || stages % options.chunks != 0)
    throw Error(fmt::format("the schedule {} has {} stages a rank and no replicas, but the method {} made a "
                            "plan of {} stage{}{}",
                            policy.name, options.chunks, plan.method, stages, stages == 1 ? "" : "s",
                            has_replicas(plan) ? " with replicas" : ""),
                "choose another method or schedule", ExitCode::usage);
  const Ranks ranks = ranks_of_stages(options, policy, stages);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].ranks = ranks.of_stage[s];
    plan.stages[s].devices.clear();
    for (const int rank : plan.stages[s].ranks) plan.stages[s].devices.push_back(ranks.device[size_t(rank)]);
  }
  return plan;
}

}  // namespace antichain
