// Computes the gradient of weights in float32 from images and gradients in bf16. cuDNN has no engine from
// bf16 to float32 that works without being compiled first, and one that rounds to bf16 would lose the
// precision that the sum over all pixels has gained. So there are these ways:
//
//   kernels of one pixel   dw (K x C) = dyᵀ · x over all pixels: a matrix product, which cuBLASLt makes from
//                          bf16 to float32
//   all others             of float32 copies in TF32, whose 10 bits of mantissa hold bf16's 7: the products
//                          are exact
//
// With ANTICHAIN_CUDA_COMPILE=1, all others use the engine that cuDNN compiles: it needs no copies and, by
// the data sheet, runs at twice the rate of TF32. Compiling takes about a second a shape when a process
// begins.
#include <cstdlib>
#include <string_view>

#include "framework/error.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/transpose.h"

namespace antichain::cuda {
namespace {

class WidenedPlan : public ConvolutionPlan {
 public:
  WidenedPlan(const Convolution& c, std::shared_ptr<const ConvolutionPlan> of_float32)
      : x_(c.x.elements()), y_(c.y.elements()), plan_(std::move(of_float32)) {}

  int64_t workspace_bytes() const override {
    return bytes_of(x_) + bytes_of(y_) + Scratch::rounded(plan_->workspace_bytes());
  }

  void run(Context& context, const void* x, const void* dw, const void* dy, std::byte* at) const override {
    auto* wide_x = reinterpret_cast<float*>(at);
    auto* wide_dy = reinterpret_cast<float*>(at + bytes_of(x_));
    convert(stream_of(context), x_, static_cast<const Bf16*>(x), wide_x);
    convert(stream_of(context), y_, static_cast<const Bf16*>(dy), wide_dy);
    plan_->run(context, wide_x, dw, wide_dy, at + bytes_of(x_) + bytes_of(y_));
  }

 private:
  static int64_t bytes_of(int64_t elements) { return Scratch::rounded(elements * int64_t(sizeof(float))); }

  const int64_t x_, y_;  // elements
  const std::shared_ptr<const ConvolutionPlan> plan_;
};

}  // namespace

std::shared_ptr<const ConvolutionPlan> plan_bf16_weight_gradient(const Convolution& c) {
  if (is_product(c)) return plan_product(c, Pass::weight_gradient, Factors::exact);
  if (compiles_weight_gradients())
    if (auto compiled = plan_compiled_weight_gradient(c)) return compiled;
  return plan_widened(c, plan(widened(c), Pass::weight_gradient, Factors::tf32));
}

std::shared_ptr<const ConvolutionPlan> plan_widened(const Convolution& c,
                                                    std::shared_ptr<const ConvolutionPlan> of_float32) {
  return std::make_shared<WidenedPlan>(c, std::move(of_float32));
}

bool compiles_weight_gradients() {
  const char* variable = std::getenv("ANTICHAIN_CUDA_COMPILE");
  const std::string_view word = variable ? variable : "";
  if (word != "" && word != "0" && word != "1")
    throw Error("ANTICHAIN_CUDA_COMPILE is '" + std::string(word) + "', which is neither 0 nor 1",
                "set it to 1 for weight gradients of bf16 by engines that cuDNN compiles, or unset it",
                ExitCode::usage);
  return word == "1";
}

Convolution widened(Convolution c) {
  c.dtype = DType::f32;
  return c;
}

}  // namespace antichain::cuda
