// Loops over numbers as they lie, one by one, for each instruction set of its own; the results are the same
// bits. Numbers that are stored as bf16 are computed with in float32, and each result is rounded.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

template <class T>
struct ElementwiseLoops {
  void (*relu)(const T* x, T* y, int64_t n);  // NaN stays, to be seen
  // dx = dy where y > 0, else 0; or that added to dx.
  void (*relu_gradient)(const T* y, const T* dy, T* dx, bool adds, int64_t n);
  void (*add)(const T* a, const T* b, T* y, int64_t n);
  void (*accumulate)(const T* x, T* y, int64_t n);  // y += x
};

// For the best instruction set there is; T is float or Bf16.
template <class T>
const ElementwiseLoops<T>& elementwise_loops();

}  // namespace antichain::cpu
