// Computes softmax of one row of numbers, and its gradient, with loops for each instruction set
// (softmax_loops.inc). All of them give the same bits. Sums are in double: lane c mod 16 adds up channel c,
// and then the lanes are added up in order.
#pragma once

#include <cstdint>

#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

struct SoftmaxLoops {
  void (*forward)(float* row, int64_t n);                        // x becomes y
  void (*backward)(const float* y, float* gradient, int64_t n);  // dy becomes dx
};

}  // namespace antichain::cpu
