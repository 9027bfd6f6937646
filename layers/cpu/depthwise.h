// Depthwise computes depthwise convolutions, in which each channel has one filter of its own, on blocked
// tensors: F. Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", CVPR 2017.
//
// oneDNN 2.6 has fast code for most of them, but not for weight gradients of kernels above 3 x 3, and not for
// images of 1 or 2 pixels. These loops (layers/cpu/depthwise_loops.h) have one way for all. A sum's order
// depends on the sizes alone, so the bits are the same on any number of threads.
//
// Bf16 numbers are widened plane by plane and multiplied as float32 with the float32 weights: instructions
// for bf16 add up pairs of channels, and no two channels are added here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/context.h"
#include "framework/op.h"
#include "framework/tensor.h"
#include "layers/conv2d.h"
#include "layers/cpu/depthwise_loops.h"

namespace antichain::cpu {

class Depthwise : public Kernel {
 public:
  // Returns the kernel if this is such a convolution with as many filters as channels, without dilation, and
  // the machine multiplies and adds in one instruction (AVX2 or AVX-512).
  static std::optional<Depthwise> of(const Conv2d&, const Shape& x, const Shape& y, Precision);

  // Tensors are `blocked()`, parameters plain. The prepared tensors are the weights in the order in which
  // forward reads them, the same for the input gradient, and the bias padded to whole blocks.
  std::vector<TensorSpec> prepared() const;
  int64_t workspace_bytes(int threads) const;
  void prepare(Context&, std::span<const Tensor> params, std::span<const Tensor> prepared) const override;
  void forward(Context&, const Forward&) const override;
  void backward(Context&, const Backward&) const override;

 private:
  Depthwise(const Conv2dOptions&, const Shape& x, const Shape& y, Precision);
  // Computes the results of all planes: y, or dx from dy. `bias` may be null.
  template <class T>
  void convolve(Context&, const PlaneTaps&, const T* source, const float* weights, const float* bias,
                T* result) const;
  template <class T>
  void correlate(Context&, const T* x, const T* dy, float* dw, Into) const;
  int64_t frame_floats() const;
  int64_t thread_floats() const;
  int64_t sums_of_block() const;

  Conv2dOptions options_;
  Precision precision_;
  Shape x_, y_;
  int64_t lanes_, blocks_;
  int64_t group_;  // images that are processed together: several where they are small
  PlaneTaps forward_, backward_;
};

}  // namespace antichain::cpu
