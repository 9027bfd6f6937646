#include "app/plan_figures.h"

#include <algorithm>

#include "pipeline/simulate.h"

namespace antichain {

PlanFigures figures(const Plan& plan, const Profile& profile, const PlanOptions& options) {
  return {price(plan, profile, options)};
}

double PlanFigures::slowest_s() const {
  return double(std::ranges::max(stages, {}, &StagePrice::stage_ns).stage_ns) * 1e-9;
}

double PlanFigures::imbalance() const {
  double busy_s = 0;
  int devices = 0;
  for (const StagePrice& stage : stages) {
    busy_s += stage.devices * double(stage.stage_ns) * 1e-9;
    devices += stage.devices;
  }
  return busy_s > 0 ? slowest_s() * devices / busy_s : 1;
}

int64_t PlanFigures::boundary_bytes() const {
  int64_t sum = 0;
  for (const StagePrice& stage : stages) sum += stage.boundary.bytes;
  return sum;
}

int64_t PlanFigures::memory_bytes() const {
  return std::ranges::max(stages, {}, &StagePrice::memory_bytes).memory_bytes;
}

double speedup(double step_s, const Profile& profile, const PlanOptions& options) {
  double fastest = 0;
  for (const Device& device : options.cluster.devices) fastest = std::max(fastest, device.speed);
  if (fastest == 0) fastest = 1;
  return one_device_step_s(profile, options.microbatches) / fastest / step_s;
}

}  // namespace antichain
