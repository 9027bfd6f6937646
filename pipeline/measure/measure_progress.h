// How far the profiler is and how long it will still take. The first step, which warms up, tells how long
// steps take and so how many will be measured; until it is over, that is extrapolated.
#pragma once

#include <string_view>

namespace antichain {

struct MeasureProgress {
  double share = 0;   // done, of all
  double left_s = 0;  // estimated
  std::string_view node;
};

// In host memory a node is run forward once a micro-batch, and backward twice as long. Returns the share of a
// step that is done behind the forward or backward of node `id`, of `nodes` nodes in order, for this
// micro-batch.
double share_of_step(int id, bool forward, int microbatch, int nodes, int microbatches);

// How many rounds of `round_s` fit into the budget, within these bounds.
int fitting_repeats(double budget_s, double round_s, int least, int most);

// After so many steps in so many seconds; `all` of them, or 0 as long as that is not known: then a step is
// followed by as many rounds as fit.
struct RepeatOptions {
  double budget_s = 0;
  int least = 1, most = 1;
};
MeasureProgress progress_after(double steps, double all, double elapsed_s, const RepeatOptions&);

}  // namespace antichain
