// Defines the activation functions for device code, with the arithmetic of the CPU's loops.
#pragma once

#include "framework/cuda/launch.h"
#include "layers/activate.h"

namespace antichain::cuda::formulas {

#define INLINE ANTICHAIN_ANYWHERE static inline
#include "layers/activation_formulas.inc"
#undef INLINE

}  // namespace antichain::cuda::formulas
