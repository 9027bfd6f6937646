// What a plan costs, stage by stage, as tables show it.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/planner.h"

namespace antichain {

struct StageFigures {
  double forward_s = 0, backward_s = 0;  // of its nodes, as profiled
  double stage_s =
      0;  // of each of its devices, per micro-batch of the step (formula: partition/stage_cost.h)
  int64_t boundary_bytes = 0;  // of the tensors that cross from this stage and earlier ones to later ones
  int64_t memory_bytes = 0, limit_bytes = 0;  // of a device: needed, and there at least (0: unlimited)
  int devices = 1;
};

struct PlanFigures {
  std::vector<StageFigures> stages;

  double slowest_s() const;
  double imbalance() const;        // the slowest stage's time over the mean of all devices'
  int64_t boundary_bytes() const;  // of all boundaries
  int64_t memory_bytes() const;    // of the fullest device
};
PlanFigures figures(const Plan&, const Profile&, const PlanOptions&);

// How much longer a step takes on one device, the fastest of the cluster's, than `step_s`.
double speedup(double step_s, const Profile&, const PlanOptions&);

}  // namespace antichain
