// The loops of narrow_groups.cpp process one block of channels of one image. The image is framed by zeros; a
// loop convolves it with packed weights, or correlates it with a gradient. They are written once
// (narrow_group_loops.inc) and compiled for AVX2, with 8 channels a block, and AVX-512, with 16. A vector
// register holds the block's channels of one pixel.
#pragma once

#include <cstdint>

#include "layers/cpu/instruction_set.h"

namespace antichain::cpu::narrow {

constexpr int side = 3, taps = side * side;

// Holds one block of one image with a frame of zeros, so that no loop asks whether it is inside.
struct Padded {
  int64_t height, width;
};

struct Loops {
  // Computes a plane of height x width results from framed pixels.
  using Convolve = void (*)(const float* x, const Padded&, const float* w, float* y, int64_t height,
                            int64_t width);
  // Adds one image's sums to sum[tap][j][lane]: lane is an input channel, j an output channel of its group.
  using Correlate = void (*)(const float* x, const Padded&, const float* dy, int64_t height, int64_t width,
                             float* sum);
  struct OfGroup {  // for a stride of 1 and 2
    Convolve forward[2];
    Convolve data[2];  // with stride 1, from pixels as far apart as the windows were
    Correlate weights[2];
  };
  int64_t lanes;
  OfGroup of_4, of_8;
};

}  // namespace antichain::cpu::narrow
