// Computes softmax cross-entropy of rows of many classes, with loops for each instruction set
// (cross_entropy_loops.inc). All of them give the same bits.
//
// A row is read once: Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018. Exponentials
// are float32, and lane k mod 16 adds up those of class k in double.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

struct RowSums {
  float largest;
  int64_t at;    // where the largest is; the first of equals
  double sum;    // Σ exp(x − largest)
  double total;  // Σ weight · x
};

// A row's gradient is factor · exp(x − largest) − weight · share, and rounded once.
struct RowSlope {
  float largest, factor, share;
};

template <class T>  // float or Bf16
struct CrossEntropyLoops {
  // `weights` are those of the classes, nullptr: 1. The total is 0 unless `wants_total`.
  void (*sums)(const T* x, int64_t n, const float* weights, bool wants_total, RowSums* to);
  void (*gradient)(const T* x, T* dx, int64_t n, const float* weights, const RowSlope& slope);
};

}  // namespace antichain::cpu
