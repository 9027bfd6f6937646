// These are the element-wise passes over device memory that every stage needs, whatever its operators are:
// gradient sums, and the search for infinities and NaN.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "framework/cuda/resources.h"

namespace antichain::cuda {

void add(Stream, const float* x, float* y, int64_t count);  // y += x
void add(Stream, const Bf16* x, Bf16* y, int64_t count);
// Sets *found to 1 where a number is infinite or NaN; otherwise leaves it.

}  // namespace antichain::cuda
