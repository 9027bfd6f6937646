#include "partition/plan/plan_price.h"

#include <algorithm>
#include <set>

namespace antichain {
namespace {

std::vector<int> devices_of(const Plan& plan, const PlanStage& stage) {
  std::vector<int> devices;
  for (int rank : stage.ranks) devices.push_back(plan.device_of(rank));
  return devices;
}

StagePrice price_stage(const Plan& plan, const PlanStage& stage, const std::vector<int>& devices,
                       PipelinePlace at, const Profile& profile, const PlanOptions& options) {
  const Profile& times = options.cluster.profile(options.cluster.device(devices[0]).profile, profile);
  const StageSum sum = sum_of(profile, times, stage.nodes, stage.recomputed);
  StagePrice price = {.forward_s = sum.forward_s,
                      .backward_s = sum.backward_s,
                      .devices = int(devices.size()),
                      .in_flight = options.in_flight(at),
                      .speed = options.cluster.device(devices[0]).speed};
  for (int d : devices) {
    const Device& device = options.cluster.device(d);
    price.speed = std::min(price.speed, device.speed);
    if (device.memory_bytes > 0)
      price.limit_bytes =
          price.limit_bytes > 0 ? std::min(price.limit_bytes, device.memory_bytes) : device.memory_bytes;
  }
  const Link& link = options.cluster.link(devices);
  int64_t work = 0, gradient = 0;
  for (int n : stage.nodes) {
    const NodeCost& cost = profile.nodes[n].cost;
    work += work_ns(times, n, price.speed);
    gradient += gradient_ns(cost.param_bytes, link, options.microbatches);
  }
  for (const int n : stage.recomputed)
    work += work_ns({.forward_s = times.nodes[size_t(n)].cost.forward_s}, price.speed);
  price.stage_ns = stage_ns(work, gradient, price.devices);
  price.memory_bytes = memory_bytes(sum, price.in_flight, price.devices, plan.shard_optimiser);
  return price;
}

// Tensors that no two stages have are not sent.
void add_sent(std::vector<StagePrice>& prices, const Plan& plan, const Profile& profile,
              const Cluster& cluster) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  std::set<int> stages;
  for (const SentTensor& tensor : profile.sent_tensors()) {
    stages.clear();
    for (int n : tensor.nodes) stages.insert(stage_of[size_t(n)]);
    for (int s : stages)
      if (stages.size() > 1 && !cluster.device(plan.device_of(plan.stages[size_t(s)].ranks[0])).host)
        prices[size_t(s)].sent_ns += sent_ns(tensor.bytes, cluster.within_node);
  }
}

}  // namespace

std::vector<Boundary> boundaries(const Plan& plan, const Profile& profile) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  std::vector<int> last_use = stage_of;
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    for (int u : profile.nodes[n].inputs) last_use[u] = std::max(last_use[u], stage_of[n]);
  std::vector<Boundary> after(plan.stages.size());
  const auto change = [&](int stage, int64_t bytes, int tensors) {
    after[stage].bytes += bytes, after[stage].tensors += tensors;
  };
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    if (stage_of[n] == last_use[n] || stage_of[n] < 0) continue;  // an input: whoever uses it loads it
    change(stage_of[n], profile.nodes[n].cost.output_bytes, 1);
    change(last_use[n], -profile.nodes[n].cost.output_bytes, -1);
  }
  for (size_t s = 1; s < after.size(); ++s) change(int(s), after[s - 1].bytes, after[s - 1].tensors);
  return after;
}

std::vector<StagePrice> price(const Plan& plan, const Profile& profile, const PlanOptions& options) {
  std::vector<StagePrice> prices;
  const std::vector<Boundary> after = boundaries(plan, profile);
  PipelinePlace at = {.microbatches = options.microbatches, .devices = 0};
  for (const PlanStage& stage : plan.stages) at.devices += int(stage.ranks.size());
  at.devices_left = at.devices;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    std::vector<int> devices = devices_of(plan, plan.stages[s]);
    at.replicas = int(devices.size());
    prices.push_back(price_stage(plan, plan.stages[s], devices, at, profile, options));
    prices.back().boundary = after[s];
    at.devices_left -= at.replicas;
    if (s + 1 == plan.stages.size()) break;
    const std::vector<int> next = devices_of(plan, plan.stages[s + 1]);
    if (devices.size() == 1 && next == devices) continue;  // nothing leaves the device
    devices.insert(devices.end(), next.begin(), next.end());
    prices.back().boundary_ns = transfer_ns(after[s].bytes, after[s].tensors, options.cluster.link(devices));
  }
  if (of_loads(options.objective)) add_sent(prices, plan, profile, options.cluster);
  return prices;
}

std::vector<RankPrice> price_by_rank(const Plan& plan, const std::vector<StagePrice>& stages) {
  std::vector<RankPrice> ranks(size_t(plan.ranks()));
  for (size_t s = 0; s < stages.size(); ++s)
    for (const int rank : plan.stages[s].ranks) {
      RankPrice& sum = ranks[size_t(rank)];
      sum.busy_ns += stages[s].stage_ns;
      sum.memory_bytes += stages[s].memory_bytes;
    }
  return ranks;
}

}  // namespace antichain
