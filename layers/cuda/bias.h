// The light passes that convolutions and linear layers share: a number per channel, added to every pixel of it, its
// gradient, and the sum of weight gradients. T and U are float or Bf16.
#pragma once

#include "framework/bf16.h"
#include "layers/cuda/sums.h"

namespace antichain::cuda {

// y ← x + bias, `channels` innermost; x and y may be the same.
template <class T, class U>
void add_bias(Stream, int64_t elements, int64_t channels, const T* x, const float* bias, U* y);
// dw += fresh.
void accumulate(Stream, int64_t elements, const float* fresh, float* dw);
// db ← Σ dy per channel, or added to it; `partials`: runs.partials() of workspace.
template <class T>
void sum_bias(Stream, const Runs&, const T* dy, double* partials, float* db, bool adds);

}  // namespace antichain::cuda
