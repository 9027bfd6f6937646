// How the numbers of a step get to the device: as the arguments of a kernel, so that no memory of the host
// has to be kept.
#pragma once

#include "framework/cuda/resources.h"
#include "framework/step_numbers.h"

namespace antichain::cuda {

// *to becomes `numbers` when the stream comes to it.
void set_numbers(Stream, const StepNumbers& numbers, StepNumbers* to);

}  // namespace antichain::cuda
