// Element-wise passes over device memory that every stage needs whatever its operators: gradient sums and the
// optimiser. Each launches on the default stream and returns the launch's status.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "framework/sgd.h"

namespace antichain::cuda {

cudaError_t add(const float* x, float* y, int64_t count);  // y += x
cudaError_t sgd(const SgdOptions&, float rate, float* w, const float* dw, float* momentum, int64_t count);

}  // namespace antichain::cuda
