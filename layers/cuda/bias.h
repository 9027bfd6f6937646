// The light passes that convolutions and linear layers share: a number per channel, added to every pixel of it, its
// gradient, and the sum of weight gradients.
#pragma once

#include "layers/cuda/sums.h"

namespace antichain::cuda {

// y += bias, `channels` innermost.
void add_bias(Stream, int64_t elements, int64_t channels, const float* bias, float* y);
// dw += fresh.
void accumulate(Stream, int64_t elements, const float* fresh, float* dw);
// db ← Σ dy per channel, or added to it; `partials`: runs.partials() of workspace.
void sum_bias(Stream, const Runs&, const float* dy, double* partials, float* db, bool adds);

}  // namespace antichain::cuda
