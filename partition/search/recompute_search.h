// Which nodes should a stage compute again? This search finds the choice that takes least time of those that
// fit a limit of bytes, and the fewest bytes that any choice needs, both by the formula of
// partition/plan/working_set.h.
//
// It goes through the stage's order and keeps, for everything that later nodes can tell apart
// (recompute_state.h), the Pareto set of time, kept bytes and working sets. Bounds rule out most of it. They
// come from graphs in which states are one: at first those that differ by few bytes, and then those that are
// beaten at the best price of a byte. Where too many labels are left, the range of the largest working set is
// divided, or the graph tells more states apart, the most promising part first; at last each state has the
// front of all paths from it. Choosing what to keep on a chain by dynamic programming is due to Beaumont,
// Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal Checkpointing for Heterogeneous Chains", ACM Transactions
// on Mathematical Software 2024.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "partition/plan/working_set.h"

namespace antichain {

struct RecomputeChoice {
  std::vector<bool> again;  // by position in the stage
  WorkingSet set;
  int64_t ns = 0;     // of what is computed again
  int64_t bytes = 0;  // in flight x kept + again

  std::vector<int> of(const std::vector<int>& nodes) const;  // those that are recomputed
};

// A RecomputeFind is what a search came to.
struct RecomputeFind {
  std::optional<RecomputeChoice> choice;  // nothing where none was found that fits
  bool exact = true;                      // whether there is certainly no better one, or none
  int64_t labels = 0;                     // and states that the search made
};

struct RecomputeRequest {
  int in_flight = 1;           // micro-batches
  int64_t budget_bytes = 0;    // for RecomputeChoice::bytes
  double speed = 1;            // of the device
  int64_t effort = 8'000'000;  // labels and states, five seconds, after which a choice is not proved
};

// Looks for the choice that takes least time within the budget.
RecomputeFind least_time(const StageOrder&, const RecomputeRequest&);
// Looks for the choice that needs fewest bytes, whatever the budget. It always finds one.
RecomputeFind least_bytes(const StageOrder&, const RecomputeRequest&);

}  // namespace antichain
