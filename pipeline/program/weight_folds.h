// This pass says what a rank does, after all its backwards, for the weights that several nodes have: how the
// gradients of their uses are folded in the one order that does not depend on the cut, and which of the sums
// travel.
#pragma once

#include "pipeline/program/program.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {

// Adds the folds of one rank and the buffers that they send and receive.
void add_weight_folds(RankProgram&, int rank, int microbatches, const StepNetwork&, const Profile&,
                      const Plan&, const Crossing&);

}  // namespace antichain
