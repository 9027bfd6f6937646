// PlanFigures are what a plan costs, stage by stage and rank by rank, as tables show it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partition/plan/plan_price.h"

namespace antichain {

struct PlanFigures {
  std::vector<StagePrice> stages;
  std::vector<RankPrice> ranks;

  double slowest_s() const;        // of the slowest rank, for one micro-batch of the step
  double imbalance() const;        // the slowest rank's time over the mean of all ranks'
  int64_t boundary_bytes() const;  // of all boundaries
  int64_t memory_bytes() const;    // of the fullest device
};
PlanFigures figures(const Plan&, const Profile&, const PlanOptions&);

// Returns how many times `step_s` a step takes on one device, the fastest of the cluster.
double speedup(double step_s, const Profile&, const PlanOptions&);

// Returns "8", or with replicas the devices of each stage: "3+5x1", "1x8".
std::string stages_in_short(const Plan&);

}  // namespace antichain
