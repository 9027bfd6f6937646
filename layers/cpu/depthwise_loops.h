// The loops of depthwise convolutions (layers/cpu/depthwise.h) process one block of channels of some images.
// They are written once (depthwise_loops.inc) and compiled for each instruction set: 16 channels a block with
// AVX-512, 8 without.
//
// A channel's numbers are multiplied and added by fused operations in an order that depends on the sizes
// alone. So its bits are the same on every instruction set, whatever the block.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"
#include "layers/cpu/taps.h"

namespace antichain::cpu {

// Chains of float32 sums of products have at most this many pixels, or a single row.
constexpr int64_t pixels_in_float = 256;

// Views the planes of one block of channels in consecutive images, `step` numbers apart.
template <class T>
struct Planes {
  T* first;
  int64_t step, images;
};

// T is the type of activations, float or Bf16. `frames` has frame_pixels() x lanes numbers for each image, of
// which those around the source's rows are zero. `wide` has room for the other planes in float32, where T is
// another type.
template <class T>
struct DepthwiseLoops {
  int64_t lanes;  // channels of a block

  // Computes planes of results from planes of the source. `weights` has for each class of rows, for each
  // class of columns, taps x taps x lanes numbers in the order of the source's pixels. `bias` has a number a
  // lane, or is null.
  void (*convolve)(const PlaneTaps&, const Planes<const T>& source, float* frames, const float* weights,
                   const float* bias, float* wide, const Planes<T>& result);

  // Adds the weight gradient to `sums`, taps x taps x lanes of the forward taps. Products are summed in
  // float32 over the images' planes, or over pixels_in_float of one image's, and then in double.
  void (*correlate)(const PlaneTaps&, const Planes<const T>& x, const Planes<const T>& dy, float* frames,
                    float* wide, double* sums);
};

}  // namespace antichain::cpu
