#include "pipeline/planning/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "framework/error.h"

namespace antichain {
namespace {

// Returns devices of the cluster, the fastest first where there are more than are used.
std::vector<int> used_devices(const Cluster& cluster, int ranks) {
  std::vector<int> devices(std::max(cluster.devices.size(), size_t(ranks)));
  std::iota(devices.begin(), devices.end(), 0);
  if (int(devices.size()) > ranks)
    std::ranges::stable_sort(devices, std::greater<>(), [&](int d) { return cluster.device(d).speed; });
  devices.resize(size_t(ranks));
  return devices;
}

}  // namespace

PlanOptions on_so_many(const PlanOptions& options, const Policy& policy, int ranks) {
  PlanOptions asked = options;
  asked.in_flight = policy.in_flight_on(ranks, options.chunks, options.microbatches);
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
