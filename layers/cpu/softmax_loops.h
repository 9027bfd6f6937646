// Softmax of one row of numbers and its gradient, for each instruction set (softmax_loops.inc), with the same
// bits as result. Sums are in double: channel c in lane c mod 16, then the lanes in order.
#pragma once

#include <cstdint>

#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

struct SoftmaxLoops {
  void (*forward)(float* row, int64_t n);                        // x becomes y
  void (*backward)(const float* y, float* gradient, int64_t n);  // dy becomes dx
};

const PerInstructionSet<const SoftmaxLoops*>& every_softmax_loops();

}  // namespace antichain::cpu
