// An objective is what a plan minimises. The names are read and printed here; everything else speaks of the
// enum.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antichain {

enum class Objective {
  compute,              // the slowest stage
  compute_or_transfer,  // the slowest stage or boundary
  load,                 // the largest load, of computing and then sending (partition/plan/stage_cost.h)
  overlapped_load,      // the same for devices that compute while they send
  // The simulated step. Planners, which simulate nothing, count boundaries for it as above;
  // pipeline/planning compares the steps.
  makespan,
  // The simulated period of steps that overlap, for which the same holds.
  period,
};

// Says whether the objective is a time of the whole step, which is simulated.
constexpr bool of_a_step(Objective objective) {
  return objective == Objective::makespan || objective == Objective::period;
}

// Says whether a stage is charged for what it sends and receives, and nothing for what passes by.
constexpr bool of_loads(Objective objective) {
  return objective == Objective::load || objective == Objective::overlapped_load;
}

std::string_view name_of(Objective);         // "compute-or-transfer"
Objective objective(std::string_view name);  // Usage Error listing the names
std::vector<std::string> objective_names();

}  // namespace antichain
