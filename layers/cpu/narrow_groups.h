// NarrowGroups computes 3 x 3 convolutions in groups of 4 or 8 channels (ResNeXt's), on tensors blocked by 16
// channels with AVX-512, and by 8 with AVX2.
//
// A vector of the channels of one pixel holds whole groups, such as 4 of 4 channels. The loops interleave
// them when they copy the image into a frame of zeros. So one instruction reads channel j of every group and
// repeats it, and it multiplies its own weights in all groups at once:
//
//   x   a0 b0 c0 d0 | a1 b1 c1 d1 | …       spread(x, 1)   a1 b1 c1 d1 | a1 b1 c1 d1 | …
//   y  += spread(x, j) · weight[j]          weight[j]      of outputs 0, 1, 2, 3 from input j, in each group
//
// so nothing is multiplied in vain, and no tensor leaves its layout. (General libraries pad such groups to
// whole blocks, or rearrange both tensors at every call.) The input gradient is the same sum over dy with the
// weights transposed and flipped; a weight gradient spreads dy and sums over pixels, row by row.
//
// Bf16 numbers are widened plane by plane, and multiplied as float32 with the float32 weights: the
// instructions for bf16 add up pairs of neighbouring channels, and these groups have too few.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/context.h"
#include "framework/op.h"
#include "framework/tensor.h"
#include "layers/conv2d.h"

namespace antichain::cpu {

class NarrowGroups : public Kernel {
 public:
  // Returns the kernel if this is such a convolution, and the machine has the instructions.
  static std::optional<NarrowGroups> of(const Conv2d&, const Shape& x, const Shape& y, Precision);

  // Tensors are `blocked()`, weights plain (K x C/groups x 3 x 3).
  void forward(Context&, const Forward&) const override;
  void backward(Context&, const Backward&) const override;
  int64_t workspace_bytes(int threads) const;

 private:
  NarrowGroups() = default;
  template <class T>
  void forward(Context&, const T* x, const float* w, T* y) const;
  template <class T>
  void backward_data(Context&, const float* w, const T* dy, T* dx) const;
  template <class T>
  void backward_weights(Context&, const T* x, const T* dy, float* dw, Into) const;
  int64_t packed_floats(int64_t blocks) const;
  int64_t frame_floats() const;
  int64_t wide_floats() const;
  int64_t thread_floats() const { return frame_floats() + wide_floats(); }
  // Clears the frames of all threads. Planes leave the numbers around them as they are.
  float* frames_of_zeros(float* at, int threads) const;

  Precision precision_ = Precision::float32;
  int group_ = 0, stride_ = 1;  // channels of a group
  int64_t lanes_ = 0, images_ = 0, blocks_ = 0, height_ = 0, width_ = 0, y_height_ = 0, y_width_ = 0;
};

}  // namespace antichain::cpu
