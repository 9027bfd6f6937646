// The loops of narrow_groups.cpp process one block of channels of one image. They frame the image by zeros,
// and convolve it with packed weights or correlate it with a gradient. They are written once
// (narrow_group_loops.inc) and compiled for AVX2, with 8 channels a block, and AVX-512, with 16. A vector
// register holds the block's channels of one pixel.
#pragma once

#include <cstdint>

#include "layers/cpu/instruction_set.h"

namespace antichain::cpu::narrow {

constexpr int side = 3, taps = side * side, pad = 1;

// Returns how long the side of a frame is that so many windows need.
constexpr int64_t framed(int64_t windows, int64_t stride) { return (windows - 1) * stride + side; }

// A Plane is one block of one image.
struct Plane {
  const float* at;
  int64_t height, width;
};

// Packed weights and their sums are [tap][j][lane]. Within a block the groups are interleaved: lane
// c * groups + i is channel c of group i. A frame is zero around the image, and has a row more at its end.
struct Loops {
  // Computes a plane of height x width results.
  using Convolve = void (*)(const Plane& x, const float* w, float* frame, float* y, int64_t height,
                            int64_t width);
  // Adds one image's sums: lane is an input channel, j an output channel of its group.
  using Correlate = void (*)(const Plane& x, const Plane& dy, float* frame, float* sum);
  struct OfGroup {  // for a stride of 1 and 2
    Convolve forward[2];
    Convolve data[2];  // with stride 1, from pixels as far apart as the windows were
    Correlate weights[2];
  };
  int64_t lanes;
  OfGroup of_4, of_8;
};

}  // namespace antichain::cpu::narrow
