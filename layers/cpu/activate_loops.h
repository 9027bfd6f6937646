// Computes activation functions of numbers in memory order, with loops for each instruction set
// (activate_loops.inc). The results are the same bits with all of them. Bf16 numbers are widened to float32
// for computing, and each result is rounded.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/activate.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

template <class T>  // float or Bf16
struct ActivateLoops {
  void (*forward)(ActivationFunction, const T* x, T* y, int64_t n);
  // Computes dx, or with `adds` adds it to what is there. `kept` is y where derives_from_y, otherwise x.
  void (*backward)(ActivationFunction, const T* kept, const T* dy, T* dx, bool adds, int64_t n);
};

}  // namespace antichain::cpu
