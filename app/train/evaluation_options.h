// These options of `antichain train` say when a run evaluates, when it ends early, and whether the best
// checkpoint is kept.
#pragma once

#include <cstdint>

#include "app/cli/cli_forward.h"

namespace antichain {

struct EvaluationOptions {
  int64_t every = 0;  // steps; 0: at each epoch's end
  int patience = 0;   // evaluations; 0: the run never ends early
  bool keep_best = false;
};

void add_evaluation_options(CLI::App&, EvaluationOptions&);
// Throws a usage Error where the best checkpoint is to be kept but there are no checkpoints.
void check(const EvaluationOptions&, bool has_checkpoints);

}  // namespace antichain
