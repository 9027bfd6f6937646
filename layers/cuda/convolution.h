// A convolution's sizes, and a plan for one of its three passes: what cuDNN (cudnn_convolution.cpp) and our
// own loops (direct_convolution.cu) both understand.
//
// Activations lie in `layout`, nhwc or plain; weights in the same order (K x R x S x C, or K x C x R x S), so
// Layout::nhwc of their logical shape is what a kernel that works in nhwc wants. All are of one type, float32
// or bf16, but the gradient of weights, which is always float32.
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

struct NamedPlan {
  std::string engine;  // for people
  std::shared_ptr<const ConvolutionPlan> plan;
};

// nullptr where cuDNN has nothing that is deterministic and as exact as asked for.
std::shared_ptr<const ConvolutionPlan> plan_by_cudnn(const Convolution&, Pass, Layout, Factors);
// Of bf16, in nhwc. The second: by a plan of float32 copies, which the first takes where the gradient is no
// matrix product and none is compiled.
std::shared_ptr<const ConvolutionPlan> plan_bf16_weight_gradient(const Convolution&);
std::shared_ptr<const ConvolutionPlan> plan_widened(const Convolution&,
                                                    std::shared_ptr<const ConvolutionPlan> of_float32);
// From bf16 to float32 by an engine that cuDNN compiles for this shape, in nhwc, which takes it about a
// second. nullptr where it has none.
std::shared_ptr<const ConvolutionPlan> plan_compiled_weight_gradient(const Convolution&);
// Whether ANTICHAIN_CUDA_COMPILE=1 asks for these where there is no matrix product. Error where it says
// something else.
bool compiles_weight_gradients();
Convolution widened(Convolution);
// By cuBLASLt, in nhwc, where the convolution is a matrix product.
bool is_product(const Convolution&);
std::shared_ptr<const ConvolutionPlan> plan_product(const Convolution&, Pass, Factors);
// In nhwc, by a plan that works in NCHW.
std::shared_ptr<const ConvolutionPlan> plan_reordered(const Convolution&, Pass,
                                                      std::shared_ptr<const ConvolutionPlan> nchw);
// In nhwc, for every shape; slow.
std::shared_ptr<const ConvolutionPlan> plan_directly(const Convolution&, Pass);
// cuDNN's in nhwc, else cuDNN's in NCHW between two reorders, else ours; but weight gradients of bf16 as
// above. Ours for all where ANTICHAIN_CUDA_LOOPS says so.
std::shared_ptr<const ConvolutionPlan> plan(const Convolution&, Pass, Factors);

// For who compares: all of cuDNN's in that layout, the first being plan_by_cudnn's; and every way there is in
// nhwc, the first being that of `plan` (layers/cuda/convolution_plans.cpp).
std::vector<NamedPlan> plans_by_cudnn(const Convolution&, Pass, Layout, Factors);
std::vector<NamedPlan> all_plans(const Convolution&, Pass, Factors);

}  // namespace antichain::cuda
