// Computes softmax of one row of numbers, and its gradient, with loops for each instruction set
// (softmax_loops.inc), which all give the same bits. Sums are in double: channel c in lane c mod 16, then the
// lanes in order.
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
