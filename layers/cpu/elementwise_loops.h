// Loops over numbers as they lie, one by one, for each instruction set of its own; the results are the same bits.
#pragma once

#include <cstdint>

#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

struct ElementwiseLoops {
  void (*relu)(const float* x, float* y, int64_t n);  // NaN stays, to be seen
  // dx = dy where y > 0, else 0; or that added to dx.
  void (*relu_gradient)(const float* y, const float* dy, float* dx, bool adds, int64_t n);
  void (*add)(const float* a, const float* b, float* y, int64_t n);
  void (*accumulate)(const float* x, float* y, int64_t n);  // y += x
};

const ElementwiseLoops& elementwise_loops();  // for the best instruction set there is

}  // namespace antichain::cpu
