// A memory curve is the shortest step over the memory of a device: of twelve limits, from the smallest that
// any plan fits to the one from which on nothing is recomputed, each with a plan of its own. Limits are for
// what the formula of partition/plan/stage_cost.h counts, by which plans are proved. What is shown is what
// the compiled program takes.
#pragma once

#include <string>
#include <vector>

#include "app/obtain/plan_task.h"

namespace antichain {

struct CurvePoint {
  int64_t memory_bytes = 0;  // that the program takes on the fullest rank
  Plan plan;
};
// Limits ascend. Those of the task's cluster are replaced.
std::vector<CurvePoint> memory_curve(const Profile&, const PlanTask&);

// Returns a table and a drawing `width` characters wide.
std::string describe(const std::vector<CurvePoint>&, const Profile&, const PlanTask&, int width);

}  // namespace antichain
