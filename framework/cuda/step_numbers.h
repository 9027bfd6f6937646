// Passes the numbers of a step to the device as the arguments of a kernel, so that no host memory has to be
// kept for them.
#pragma once

#include "framework/cuda/resources.h"
#include "framework/step_numbers.h"

namespace antichain::cuda {

// Sets *to to `numbers` when the stream gets there.
void set_numbers(Stream, const StepNumbers& numbers, StepNumbers* to);

}  // namespace antichain::cuda
