#include "partition/planners/pipedream_cost.h"

#include <algorithm>
#include <numeric>

namespace antichain {

double pipedream_stage_ns(int64_t work_ns, int64_t param_bytes, int replicas, const Link& link) {
  const double all_reduce_s =
      link.bytes_per_s > 0 ? 4.0 * (replicas - 1) * double(param_bytes) / (link.bytes_per_s * replicas) : 0;
  return (double(work_ns) + 1e9 * all_reduce_s) / replicas;
}

const Link& pipedream_link(const PlanOptions& options) {
  std::vector<int> devices(size_t(options.stages));
  std::iota(devices.begin(), devices.end(), 0);
  return options.cluster.link(devices);
}

double pipedream_cost_s(const Plan& plan, const Profile& profile, const PlanOptions& options) {
  double slowest_ns = 0;
  for (const PlanStage& stage : plan.stages) {
    int64_t work = 0, params = 0;
    for (int n : stage.nodes) {
      work += work_ns(profile.nodes[n].cost, 1);
      params += profile.nodes[n].cost.param_bytes;
    }
    slowest_ns = std::max(slowest_ns,
                          pipedream_stage_ns(work, params, int(stage.ranks.size()), pipedream_link(options)));
  }
  return slowest_ns / 1e9;
}

}  // namespace antichain
