#include "app/report/plan_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "pipeline/simulate/simulate.h"

namespace antichain {

PlanFigures figures(const Plan& plan, const Profile& profile, const PlanOptions& options) {
  std::vector<StagePrice> stages = price(plan, profile, options);
  // How many micro-batches are in flight is the schedule's rule, by which the plan was priced.
  for (size_t s = 0; s < stages.size(); ++s)
    if (const int64_t planned = plan.stages[s].memory_bytes; planned > 0) stages[s].memory_bytes = planned;
  return {stages, price_by_rank(plan, stages)};
}

double PlanFigures::slowest_s() const {
  return double(std::ranges::max(ranks, {}, &RankPrice::busy_ns).busy_ns) * 1e-9;
}

double PlanFigures::imbalance() const {
  double busy_s = 0;
  for (const RankPrice& rank : ranks) busy_s += double(rank.busy_ns) * 1e-9;
  return busy_s > 0 ? slowest_s() * double(ranks.size()) / busy_s : 1;
}

int64_t PlanFigures::boundary_bytes() const {
  int64_t sum = 0;
  for (const StagePrice& stage : stages) sum += stage.boundary.bytes;
  return sum;
}

int64_t PlanFigures::memory_bytes() const {
  return std::ranges::max(ranks, {}, &RankPrice::memory_bytes).memory_bytes;
}

double speedup(double step_s, const Profile& profile, const PlanOptions& options) {
  const Cluster& cluster = options.cluster;
  double fastest_s = cluster.devices.empty() ? one_device_step_s(profile, options.microbatches)
                                             : std::numeric_limits<double>::infinity();
  for (const Device& device : cluster.devices)
    fastest_s = std::min(
        fastest_s,
        one_device_step_s(cluster.profile(device.profile, profile), options.microbatches) / device.speed);
  return fastest_s / step_s;
}

std::string stages_in_short(const Plan& plan) {
  if (!has_replicas(plan)) return std::to_string(plan.stages.size());
  std::vector<std::string> runs;
  for (size_t s = 0; s < plan.stages.size();) {
    size_t end = s;
    while (end < plan.stages.size() && plan.stages[end].ranks.size() == plan.stages[s].ranks.size()) ++end;
    const size_t devices = plan.stages[s].ranks.size();
    runs.push_back(end - s == 1 && plan.stages.size() > 1 ? std::to_string(devices)
                                                          : fmt::format("{}x{}", end - s, devices));
    s = end;
  }
  return fmt::format("{}", fmt::join(runs, "+"));
}

}  // namespace antichain
