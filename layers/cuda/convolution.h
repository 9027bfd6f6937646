// A convolution's sizes, and a plan for one of its three passes: what cuDNN (cudnn_convolution.cpp) and our own loops
// (direct_convolution.cu) both understand.
//
// Activations lie in `layout`, nhwc or plain; weights in the same order (K x R x S x C, or K x C x R x S), so Layout::nhwc of
// their logical shape is what a kernel that works in nhwc wants. All are of one type, float32 or bf16, but the gradient of
// weights, which is always float32.
#pragma once

#include <memory>

#include "framework/cuda/launch.h"
#include "layers/conv2d.h"
#include "layers/cuda/operators.h"

namespace antichain::cuda {

enum class Pass { forward, input_gradient, weight_gradient };

struct Convolution {
  Shape x, weight, y;  // logical: N x C x H x W, K x C/groups x R x S, N x K x P x Q
  Extent stride, pad;
  int groups;
  DType dtype;

  Convolution(const Conv2d& op, const Shape& input, Precision precision)
      : x(input),
        weight(op.infer({&input, 1}).params[0].shape),
        y(op.infer({&input, 1}).y.shape),
        stride(op.options.stride),
        pad(op.options.pad),
        groups(op.options.groups),
        dtype(storage(precision)) {}
};

// Of the three operands a pass reads two and overwrites the third.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual void run(Context&, const void* x, const void* weight, const void* y,
                   std::byte* workspace) const = 0;
};

// nullptr where cuDNN has nothing that is deterministic and as exact as asked for.
std::shared_ptr<const ConvolutionPlan> plan_by_cudnn(const Convolution&, Pass, Layout, Factors);
// Of bf16, in nhwc.
std::shared_ptr<const ConvolutionPlan> plan_bf16_weight_gradient(const Convolution&);
// In nhwc, for every shape; slow.
std::shared_ptr<const ConvolutionPlan> plan_directly(const Convolution&, Pass);
// cuDNN's in nhwc, else cuDNN's in NCHW between two reorders, else ours; but weight gradients of bf16 as above.
std::shared_ptr<const ConvolutionPlan> plan(const Convolution&, Pass, Factors);

}  // namespace antichain::cuda
