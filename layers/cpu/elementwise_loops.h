// These loops process numbers one by one in memory order. They are compiled for each instruction set, and all
// give the same bits. Bf16 numbers are widened to float32 for computing, and each result is rounded.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

template <class T>  // float or Bf16
struct ElementwiseLoops {
  void (*relu)(const T* x, T* y, int64_t n);  // NaN stays, to be seen
  // Computes dx = dy where y > 0, otherwise 0; with `adds`, adds that to dx.
  void (*relu_gradient)(const T* y, const T* dy, T* dx, bool adds, int64_t n);
  void (*add)(const T* a, const T* b, T* y, int64_t n);
  void (*accumulate)(const T* x, T* y, int64_t n);  // y += x
  // Computes y = a · b; with `adds`, adds that to y.
  void (*multiply)(const T* a, const T* b, T* y, bool adds, int64_t n);
  void (*scale)(const T* x, float factor, T* y, bool adds, int64_t n);  // the same with one factor
  void (*add_to_sums)(const T* x, double* sums, int64_t n);             // sums += x
};

// Returns the loops for the best instruction set of the machine, as it was when this was first asked.
template <class T>
const ElementwiseLoops<T>& elementwise_loops() {
  static const ElementwiseLoops<T>& best = best_loops<ElementwiseLoops<T>>();
  return best;
}

}  // namespace antichain::cpu
