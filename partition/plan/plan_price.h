// These functions say what a plan costs, stage by stage, by the formulas of partition/plan/stage_cost.h. They
// see its node lists alone; nothing of any search goes in.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"

namespace antichain {

// A Boundary is what crosses from one stage and the earlier ones to the later ones. A tensor counts once at
// every boundary that it crosses.
struct Boundary {
  int64_t bytes = 0;
  int tensors = 0;
};
std::vector<Boundary> boundaries(const Plan&, const Profile&);  // per stage; the last stage's is empty

struct StagePrice {
  double forward_s = 0, backward_s = 0;       // of its nodes, as profiled
  int64_t sent_ns = 0;                        // of its load, where the objective is one
  int64_t stage_ns = 0;                       // of each of its devices, per micro-batch of the step
  Boundary boundary;                          // after it
  int64_t boundary_ns = 0;                    // there and back
  int64_t memory_bytes = 0, limit_bytes = 0;  // of a device: needed, and there at least (0: unlimited)
  int devices = 1, in_flight = 1;
  double speed = 1;  // of its slowest device
};
std::vector<StagePrice> price(const Plan&, const Profile&, const PlanOptions&);

// A RankPrice is what the stages of one rank cost together.
struct RankPrice {
  int64_t busy_ns = 0;  // per micro-batch of the step
  int64_t memory_bytes = 0;
};
std::vector<RankPrice> price_by_rank(const Plan&, const std::vector<StagePrice>&);

}  // namespace antichain
