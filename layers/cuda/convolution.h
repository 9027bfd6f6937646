// Describes a convolution's sizes, and a plan for one of its three passes. cuDNN (cudnn_convolution.cpp) and
// our own loops (direct_convolution.cu) both use them.
//
// Activations are in NHWC and weights in the same order (K x R x S x C). All have one type, float32 or bf16,
// except the gradient of weights: it is float32, or has the type `gradient` where a plan
// rounds it (plan_rounded_weight_gradient).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/cuda/launch.h"
#include "layers/conv2d.h"
#include "layers/cuda/operators.h"

namespace antichain::cuda {

enum class Pass { forward, input_gradient, weight_gradient };

struct Convolution {
  Shape x, weight, y;  // logical: N x C x H x W, K x C/groups x R x S, N x K x P x Q
  Extent stride, dilation;
  Padding pad;
  int groups;
  DType dtype, gradient = DType::f32;

  Convolution(const Conv2d& op, const Shape& input, Precision precision)
      : x(input),
        weight(op.filters(input)),
        y(op.infer({&input, 1}).y.shape),
        stride(op.options.stride),
        dilation(op.options.dilation),
        pad(op.options.pad),
        groups(op.options.groups),
        dtype(storage(precision)) {}
};

// A pass reads two of the three operands and overwrites the third.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual void run(Context&, const void* x, const void* weight, const void* y,
                   std::byte* workspace) const = 0;
};

struct NamedPlan {
  std::string engine;  // for people
  std::shared_ptr<const ConvolutionPlan> plan;
};

// Returns nullptr where cuDNN has no engine that is deterministic and as exact as requested.
std::shared_ptr<const ConvolutionPlan> plan_by_cudnn(const Convolution&, Pass, Factors);
// Plans a weight gradient of bf16 operands: a matrix product, or one of the two ways below. The first is an
// engine from bf16 to bf16 whose result is widened to float32: a micro-batch's gradient is summed in float32
// and rounded once, as PyTorch does it; nullptr where cuDNN has none. The second takes float32 copies.
std::shared_ptr<const ConvolutionPlan> plan_bf16_weight_gradient(const Convolution&);
std::shared_ptr<const ConvolutionPlan> plan_rounded_weight_gradient(const Convolution&);
std::shared_ptr<const ConvolutionPlan> plan_widened(const Convolution&,
                                                    std::shared_ptr<const ConvolutionPlan> of_float32);
Convolution widened(Convolution);
// cuBLASLt computes the convolution where it is a matrix product.
bool is_product(const Convolution&);
std::shared_ptr<const ConvolutionPlan> plan_product(const Convolution&, Pass, Factors);
// Plans a pass by our own loops, for every shape; slow.
std::shared_ptr<const ConvolutionPlan> plan_directly(const Convolution&, Pass);
// Plans a pass: cuDNN's, otherwise our own; weight gradients of bf16 are planned as above. All passes use our
// own loops where ANTICHAIN_CUDA_LOOPS says so.
std::shared_ptr<const ConvolutionPlan> plan(const Convolution&, Pass, Factors);

// These list plans for comparison: all of cuDNN's, beginning with plan_by_cudnn's; and all ways, beginning
// with `plan`'s (layers/cuda/convolution_plans.cpp).
std::vector<NamedPlan> plans_by_cudnn(const Convolution&, Pass, Factors);
std::vector<NamedPlan> all_plans(const Convolution&, Pass, Factors);

}  // namespace antichain::cuda
