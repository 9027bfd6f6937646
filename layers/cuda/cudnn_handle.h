// Returns cuDNN's handle of a context.
#pragma once

#include <cudnn.h>

#include "framework/cuda/resources.h"

namespace antichain::cuda {

// The handle is made at the first call, and bound to the context's stream; where either fails, nothing is
// kept.
cudnnHandle_t cudnn_of(Resources&);

}  // namespace antichain::cuda
