// At the end of a step the ranks tell rank 0 their results, as text, which is short and the same on every
// machine.
#pragma once

#include <vector>

#include "pipeline/run/runner.h"
#include "pipeline/train/step_boundary.h"

namespace antichain {

// Loss and hits are summed over ranks, in rank order. `numbers` is what each rank found that is not finite.
struct Gathered {
  StepResult sum;
  std::vector<NumberReport> numbers;
};
// Collective. The result is on rank 0, and empty elsewhere. The boundary's status travels along.
Gathered gather_sums(Job&, const StepResult& mine, StepBoundary&);

// Collective. The result is on rank 0, and empty elsewhere. A traced step has one event per action, in the
// schedule's order, so only the times travel.
std::vector<Event> gather_events(Job&, const Schedule&, const std::vector<Event>& mine);

}  // namespace antichain
