// Declares the loop of rotary positions, for each instruction set (rotary_loops.inc). All of them give the
// same bits.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

template <class T>  // float or Bf16
struct RotaryLoops {
  // Turns the pairs of one head of one position by their angles, or by minus these where `back`.
  void (*turn)(const T* x, const float* cosines, const float* sines, int64_t pairs, bool interleaved,
               bool back, T* y);
};

}  // namespace antichain::cpu
