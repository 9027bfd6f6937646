// Defines a second engine, "reference": every operator in double precision, on plain layouts, written as the
// formula stands in the operator's header. Code that runs an engine's kernels runs these as well, on float64
// tensors.
#pragma once

#include "framework/backend.h"
#include "layers/activate.h"

namespace antichain::reference {

// Registers the backend "reference" on first use. Float tensors of its kernels are f64, plain.
const Backend& backend();
// Returns the same tensor in double precision, plain: this engine computes a signature's f32 like that.
TensorSpec in_double(TensorSpec spec);

KernelEntry conv2d();
KernelEntry conv_transpose2d();
KernelEntry group_norm();
KernelEntry layer_norm();
KernelEntry linear();
KernelEntry matmul();
KernelEntry batch_norm();
KernelEntry embedding();
KernelEntry relu();
KernelEntry pool();
KernelEntry global_average_pool();
KernelEntry adaptive_average_pool();
KernelEntry add();
KernelEntry concat();
KernelEntry flatten();
KernelEntry dropout();
KernelEntry softmax_cross_entropy();
// pointwise.cpp; it has the functions and their derivatives at x, too.
double value(ActivationFunction, double x);
double derivative(ActivationFunction, double x);
KernelEntry activate();
KernelEntry layer_scale();
KernelEntry multiply();
KernelEntry softmax();
KernelEntry stochastic_depth();
KernelEntry interpolate();
KernelEntry elementwise();
KernelEntry formula_loss();
KernelEntry spectral_norm();
// attention.cpp
KernelEntry attention();
KernelEntry rotary();
// shapes.cpp
KernelEntry constant();
KernelEntry class_token();
KernelEntry gather();
KernelEntry mean();
KernelEntry permute();
KernelEntry slice();

// The kernels of an entry are two functions. They may read everything, inputs and output.
using ForwardFunction = void (*)(const Op&, const Forward&);
using BackwardFunction = void (*)(const Op&, const Backward&);
KernelEntry entry_of(ForwardFunction, BackwardFunction);
Lowering plain_lowering(const Op&, std::span<const Shape> x);

// Indexes N x C x H x W.
struct Image {
  double* values;
  int64_t n, c, h, w;
  explicit Image(const Tensor& t)
      : values(t.data<double>()), n(t.shape()[0]), c(t.shape()[1]), h(t.shape()[2]), w(t.shape()[3]) {}
  double& operator()(int64_t i, int64_t j, int64_t y, int64_t x) const {
    return values[((i * c + j) * h + y) * w + x];
  }
  bool inside(int64_t y, int64_t x) const { return y >= 0 && y < h && x >= 0 && x < w; }
};

// Returns dx[i] or dw[i] when it is wanted, otherwise nullptr; overwritten gradients come zeroed.
double* wanted(std::span<const Tensor> gradients, size_t i, Into into);

}  // namespace antichain::reference
