// What the ranks tell rank 0 at the end of a step. As text: it is little, and reads alike on every machine.
#pragma once

#include <vector>

#include "pipeline/run/runner.h"
#include "pipeline/train/step_boundary.h"

namespace antichain {

// Loss and hits summed over ranks, in rank order; what each rank found of numbers that are none.
struct Gathered {
  StepResult sum;
  std::vector<NumberReport> numbers;
};
// Collective; on rank 0, elsewhere empty. The boundary's words go along, and it hears them.
Gathered gather_sums(Job&, const StepResult& mine, StepBoundary&);

// Collective; on rank 0, elsewhere empty. A traced step has one event per action, in the schedule's order:
// only the times travel.
std::vector<Event> gather_events(Job&, const Schedule&, const std::vector<Event>& mine);

}  // namespace antichain
