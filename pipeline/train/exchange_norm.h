// The ranks tell each other the squares of their gradients' norms, in the exchange that a vote of the
// schedule has room for.
#pragma once

#include "pipeline/run/gradient_norm.h"
#include "pipeline/transport/job.h"

namespace antichain {

// Collective over several ranks. Returns the factor by which every rank multiplies its gradients, so that the
// norm of all is at most `most`. Replicas of a stage, which hold the same gradients, count once.
float agree_on_clip_factor(const SquaresByName& mine, double most, Job&);

}  // namespace antichain
