#include "pipeline/simulate/action_seconds.h"

#include <fmt/format.h>

#include "framework/error.h"

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

// Every replica sends and receives its share of the weights twice: once to add up, and once to spread the
// sums. No all-reduce moves less (Patarasuk and Yuan, "Bandwidth Optimal All-Reduce Algorithms for Clusters
// of Workstations", Journal of Parallel and Distributed Computing 2009).
double all_reduce_s(const PlanStage& stage, const Plan& plan, int64_t param_bytes, const Cluster& cluster) {
  const double r = double(stage.ranks.size());
  std::vector<int> devices;
  for (int rank : stage.ranks) devices.push_back(device_of(plan, rank, cluster));
  const Link& link = cluster.link(devices);
  return link.bytes_per_s > 0 ? 2 * (r - 1) / r * double(param_bytes) / link.bytes_per_s : 0;
}

}  // namespace

std::vector<ActionSeconds> action_seconds(const Plan& plan, const Profile& network, const Cluster& cluster) {
  std::vector<ActionSeconds> of_ranks(size_t(plan.ranks()));
  for (const PlanStage& stage : plan.stages) {
    NodeCost sum;
    for (int n : stage.nodes) {
      const NodeCost& cost = network.nodes[n].cost;
      sum.forward_s += cost.forward_s;
      sum.backward_input_s += cost.backward_input_s;
      sum.backward_weight_s += cost.backward_weight_s;
      sum.update_s += cost.update_s;
      sum.param_bytes += cost.param_bytes;
    }
    for (int rank : stage.ranks) {
      const double speed = cluster.device(device_of(plan, rank, cluster)).speed;
      ActionSeconds& s = of_ranks[size_t(rank)];
      s[size_t(Verb::forward)] = (sum.forward_s + network.overhead_s) / speed;
      s[size_t(Verb::backward)] = (sum.backward_s() + network.overhead_s) / speed;
      s[size_t(Verb::backward_input)] = (sum.backward_input_s + network.overhead_s) / speed;
      s[size_t(Verb::backward_weight)] = (sum.backward_weight_s + network.overhead_s) / speed;
      s[size_t(Verb::update)] = sum.update_s / speed;
      if (stage.ranks.size() > 1)
        s[size_t(Verb::reduce)] = all_reduce_s(stage, plan, sum.param_bytes, cluster);
    }
  }
  return of_ranks;
}

}  // namespace antichain
