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
  std::vector<double> busy_s;  // of each rank
};

// StepResults travel as letters, so that no rank waits for another to end the step.
class StepResults {
 public:
  StepResults(Job& job, StepBoundary& boundary) : job_(job), boundary_(boundary) {}
  // Every rank tells its own at each step's end, and what its computing took. The boundary's status travels
  // along.
  void tell(const StepResult& mine, double busy_s = 0);
  // Returns those of the oldest step that was not taken yet. Rank 0 waits for them; elsewhere they are empty.
  Gathered take();

 private:
  Job& job_;
  StepBoundary& boundary_;
};

// Collective. The result is on rank 0, and empty elsewhere. A traced step has one event per action, in the
// order of the schedule that was run, so only the times travel.
std::vector<Event> gather_events(Job&, const Schedule&, const std::vector<Event>& mine);

}  // namespace antichain
