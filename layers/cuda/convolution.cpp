#include "layers/cuda/convolution.h"

#include "framework/cuda/switches.h"

namespace antichain::cuda {

std::shared_ptr<const ConvolutionPlan> plan(const Convolution& c, Pass pass, Factors factors) {
  if (by_loops(Library::cudnn)) return plan_directly(c, pass);
  if (c.dtype == DType::bf16 && pass == Pass::weight_gradient) return plan_bf16_weight_gradient(c);
  if (auto by_cudnn = plan_by_cudnn(c, pass, factors)) return by_cudnn;
  return plan_directly(c, pass);
}

}  // namespace antichain::cuda
