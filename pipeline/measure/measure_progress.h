// A MeasureProgress says how far the profiler is and how long it will still take. The first step is a
// warm-up; its duration decides how many steps will be measured. Until it is over, the progress is
// extrapolated.
#pragma once

#include <string_view>

namespace antichain {

struct MeasureProgress {
  double share = 0;   // done, as a fraction
  double left_s = 0;  // estimated
  std::string_view node;
};

// Returns the fraction of a step that is done after the forward or backward of node `id`, of `nodes` nodes in
// order, for this micro-batch. In host memory each micro-batch runs a node's forward once, and its backward
// takes twice as long.
double share_of_step(int id, bool forward, int microbatch, int nodes, int microbatches);

// Returns how many rounds of `round_s` fit into the budget, within these bounds.
int fitting_repeats(double budget_s, double round_s, int least, int most);

// Returns the progress after so many steps in so many seconds. `all` is the number of steps, or 0 as long as
// it is unknown: then as many rounds as fit follow this step.
struct RepeatOptions {
  double budget_s = 0;
  int least = 1, most = 1;
};
MeasureProgress progress_after(double steps, double all, double elapsed_s, const RepeatOptions&);

}  // namespace antichain
