#include "app/plan_figures.h"

#include <algorithm>

#include "pipeline/simulate.h"

namespace antichain {
namespace {

std::vector<int> devices_of(const Plan& plan, const PlanStage& stage) {
  std::vector<int> devices;
  for (const int rank : stage.ranks) devices.push_back(plan.device_of(rank));
  return devices;
}

double stage_s(const PlanStage& stage, const std::vector<int>& devices, const Profile& profile,
               const PlanOptions& options) {
  double speed = options.cluster.device(devices[0]).speed;
  for (const int d : devices) speed = std::min(speed, options.cluster.device(d).speed);
  const Link& link = options.cluster.link(devices);
  int64_t work = 0, gradient = 0;
  for (const int n : stage.nodes) {
    work += work_ns(profile.nodes[size_t(n)].cost, speed);
    gradient += gradient_ns(profile.nodes[size_t(n)].cost.param_bytes, link, options.microbatches);
  }
  return double(stage_ns(work, gradient, int(devices.size()))) * 1e-9;
}

// Per stage: a tensor counts at every boundary from its own stage to the last one that uses it. Inputs cross none: whoever
// uses them loads them.
std::vector<int64_t> boundary_bytes(const Plan& plan, const Profile& profile) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  const auto consumers = profile.consumers();
  std::vector<int64_t> bytes(plan.stages.size());
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    if (stage_of[n] < 0) continue;
    int last = stage_of[n];
    for (const int user : consumers[n]) last = std::max(last, stage_of[size_t(user)]);
    for (int s = stage_of[n]; s < last; ++s) bytes[size_t(s)] += profile.nodes[n].cost.output_bytes;
  }
  return bytes;
}

int64_t limit_bytes(const Cluster& cluster, const std::vector<int>& devices) {
  int64_t least = 0;
  for (const int d : devices) {
    const int64_t bytes = cluster.device(d).memory_bytes;
    if (bytes > 0) least = least == 0 ? bytes : std::min(least, bytes);
  }
  return least;
}

}  // namespace

PlanFigures figures(const Plan& plan, const Profile& profile, const PlanOptions& options) {
  PlanFigures all;
  const std::vector<int64_t> crossing = boundary_bytes(plan, profile);
  for (const PlanStage& stage : plan.stages) {
    const std::vector<int> devices = devices_of(plan, stage);
    StageFigures sum{.stage_s = stage_s(stage, devices, profile, options),
                     .boundary_bytes = crossing[all.stages.size()],
                     .memory_bytes = stage.memory_bytes,
                     .limit_bytes = limit_bytes(options.cluster, devices),
                     .devices = int(devices.size())};
    for (const int n : stage.nodes) {
      sum.forward_s += profile.nodes[size_t(n)].cost.forward_s;
      sum.backward_s += profile.nodes[size_t(n)].cost.backward_s();
    }
    all.stages.push_back(sum);
  }
  return all;
}

double PlanFigures::slowest_s() const { return std::ranges::max(stages, {}, &StageFigures::stage_s).stage_s; }

double PlanFigures::imbalance() const {
  double busy_s = 0;
  int devices = 0;
  for (const StageFigures& stage : stages) {
    busy_s += stage.devices * stage.stage_s;
    devices += stage.devices;
  }
  return busy_s > 0 ? slowest_s() * devices / busy_s : 1;
}

int64_t PlanFigures::boundary_bytes() const {
  int64_t sum = 0;
  for (const StageFigures& stage : stages) sum += stage.boundary_bytes;
  return sum;
}

int64_t PlanFigures::memory_bytes() const {
  return std::ranges::max(stages, {}, &StageFigures::memory_bytes).memory_bytes;
}

double speedup(double step_s, const Profile& profile, const PlanOptions& options) {
  double fastest = 0;
  for (const Device& device : options.cluster.devices) fastest = std::max(fastest, device.speed);
  if (fastest == 0) fastest = 1;
  return one_device_step_s(profile, options.microbatches) / fastest / step_s;
}

}  // namespace antichain
