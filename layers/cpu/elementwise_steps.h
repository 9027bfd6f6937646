// Applies a function of Elementwise to a tile of numbers, with loops for each instruction set
// (elementwise_steps.inc). The results are the same bits with all of them.
#pragma once

#include <cstdint>

#include "layers/cpu/instruction_set.h"
#include "layers/elementwise.h"

namespace antichain::cpu {

struct ElementwiseSteps {
  // x has the function's three operands, n numbers each.
  void (*value)(ElementwiseFunction, const float* const* x, float* y, int64_t n);
  // Adds what dy contributes to the gradient of an operand to `before`, and writes the sum to dx, which may
  // be the same memory.
  void (*gradient)(ElementwiseFunction, int operand, const float* const* x, const float* y, const float* dy,
                   const float* before, float* dx, int64_t n);
};

}  // namespace antichain::cpu
