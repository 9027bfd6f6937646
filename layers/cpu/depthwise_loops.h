// The loops of depthwise convolutions (layers/cpu/depthwise.h) process one block of channels of one image. They
// are written once (depthwise_loops.inc) and compiled for each instruction set: 16 channels a block with
// AVX-512, 8 without.
//
// A channel's numbers are multiplied and added by fused operations in an order that depends on the sizes
// alone. So its bits are the same on every instruction set, whatever the block.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/depthwise_taps.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

struct PlaneTaps {
  AxisTaps rows, columns;

  // The frame holds the source with zeros before and after each row, so that no loop over columns asks whether
  // it is inside.
  int64_t frame_pixels() const { return rows.source * (columns.before + columns.source + columns.after); }
};

// T is the type of activations, float or Bf16. All pointers but `bias` may not be null.
template <class T>
struct DepthwiseLoops {
  int64_t lanes;  // channels of a block

  // Computes a plane of results from a plane of the source. `weights` has for each class of rows, for each
  // class of columns, taps x taps x lanes numbers in the order of the source's pixels. `frame` has
  // frame_pixels() x lanes numbers, of which those around the source's rows are zero. `bias` has a number a
  // lane, or is null. `wide` has room for the results in float32 where T is another type.
  void (*convolve)(const PlaneTaps&, const T* source, float* frame, const float* weights, const float* bias,
                   float* wide, T* result);

  // Adds the weight gradient of one plane to `sums`, taps x taps x lanes of the forward taps. Products are
  // summed in float32 over rows of at most 256 pixels together, or one row, and then in double. `frame` and
  // `wide` are as above, for dy instead of the results.
  void (*correlate)(const PlaneTaps&, const T* x, const T* dy, float* frame, float* wide, double* sums);
};

template <class T>
const PerInstructionSet<const DepthwiseLoops<T>*>& every_depthwise_loops();

}  // namespace antichain::cpu
