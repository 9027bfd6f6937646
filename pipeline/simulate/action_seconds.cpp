#include "pipeline/simulate/action_seconds.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

int device_of(const Plan& plan, int rank, const Cluster& cluster) {
  const int device = plan.device_of(rank);
  if (!cluster.devices.empty() && device >= int(cluster.devices.size()))
    throw Error(fmt::format("the plan puts rank {} on device {}, but the cluster's devices are 0 to {}", rank,
                            device, int(cluster.devices.size()) - 1),
                "plan again for this cluster");
  return device;
}

double all_reduce_s(const PlanStage& stage, const Plan& plan, int64_t param_bytes, const Cluster& cluster) {
  std::vector<int> devices;
  for (int rank : stage.ranks) devices.push_back(device_of(plan, rank, cluster));
  return antichain::all_reduce_s(param_bytes, int(devices.size()), cluster.link(devices));
}

}  // namespace

std::vector<ActionSeconds> action_seconds(const Plan& plan, const Profile& profile, const Cluster& cluster) {
  std::vector<ActionSeconds> of_ranks(size_t(plan.ranks()));
  for (const PlanStage& stage : plan.stages) {
    NodeCost sum;
    for (int n : stage.nodes) {
      const NodeCost& cost = profile.nodes[n].cost;
      sum.forward_s += cost.forward_s;
      sum.backward_input_s += cost.backward_input_s;
      sum.backward_weight_s += cost.backward_weight_s;
      sum.update_s += cost.update_s;
      sum.param_bytes += cost.param_bytes;
    }
    for (int rank : stage.ranks) {
      const double speed = cluster.device(device_of(plan, rank, cluster)).speed;
      ActionSeconds& s = of_ranks[size_t(rank)];
      s[size_t(Verb::forward)] = (sum.forward_s + profile.overhead_s) / speed;
      s[size_t(Verb::backward)] = (sum.backward_s() + profile.overhead_s) / speed;
      s[size_t(Verb::backward_input)] = (sum.backward_input_s + profile.overhead_s) / speed;
      s[size_t(Verb::backward_weight)] = (sum.backward_weight_s + profile.overhead_s) / speed;
      s[size_t(Verb::update)] = sum.update_s / speed;
      if (stage.ranks.size() > 1)
        s[size_t(Verb::reduce)] = all_reduce_s(stage, plan, sum.param_bytes, cluster);
    }
  }
  return of_ranks;
}

}  // namespace antichain
