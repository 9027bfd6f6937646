// Multiplies one plane (the numbers of one image in one block of channels) by a factor per channel, with
// loops for each instruction set (channel_scale_loops.inc). The results are the same bits with all of them.
// Bf16 numbers are widened to float32 for computing, and each result is rounded.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

// Holds a factor per channel of a block, repeated over the lanes of a vector: lane l belongs to channel
// l mod block.
template <class T>
struct alignas(64) Factors {
  float lanes[16] = {};

  // Takes the factors of `count` channels; the others are padding, and get 0.
  Factors(const T* of_channels, int64_t count, int64_t block) {
    for (int64_t c = 0; c < count; ++c)
      for (int64_t l = c; l < 16; l += block) lanes[l] = of_channels[c];
  }
};

template <class T>
struct ScaleGradient {
  const T *x, *dy;
  T* dx;        // dy · factor; nullptr: not wanted
  bool adds;    // to dx
  double* sum;  // per channel of the block: becomes Σ dy · x over the plane; nullptr: not wanted
};

template <class T>  // float or Bf16
struct ChannelScaleLoops {
  void (*forward)(const T* x, const float* factors, T* y, int64_t size);  // y = x · factor
  void (*backward)(const ScaleGradient<T>&, const float* factors, int64_t size, int block);
};

}  // namespace antichain::cpu
