// PlanFigures are what a plan costs, stage by stage, as tables show it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partition/plan/plan_price.h"

namespace antichain {

struct PlanFigures {
  std::vector<StagePrice> stages;

  double slowest_s() const;
  double imbalance() const;        // the slowest stage's time over the mean of all devices'
  int64_t boundary_bytes() const;  // of all boundaries
  int64_t memory_bytes() const;    // of the fullest device
};
PlanFigures figures(const Plan&, const Profile&, const PlanOptions&);

// Returns how many times `step_s` a step takes on one device, the fastest of the cluster.
double speedup(double step_s, const Profile&, const PlanOptions&);

// Returns "8", or with replicas the devices of each stage: "3+5x1", "1x8".
std::string stages_in_short(const Plan&);

}  // namespace antichain
