// Computes the gradient of weights in float32 from images and gradients in bf16. cuDNN has no engine from
// bf16 to float32 that works without being compiled first. So there are these ways:
//
//   kernels of one pixel   dw (K x C) = dyᵀ · x over all pixels: a matrix product, which cuBLASLt makes from
//                          bf16 to float32
//   all others, rounded    by an engine from bf16 to bf16, which sums in float32 and rounds the micro-batch's
//                          gradient once, as PyTorch's autocast does
//   all others, exact      of float32 copies in TF32, whose 10 bits of mantissa hold bf16's 7: the products
//                          are exact (`--weight-gradients exact`)
#include "framework/cuda/switches.h"
#include "layers/cuda/convert.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/scratch.h"

namespace antichain::cuda {
namespace {

// Runs a plan whose gradient is bf16, and widens the gradient.
class RoundedPlan : public ConvolutionPlan {
 public:
  RoundedPlan(const Convolution& c, std::shared_ptr<const ConvolutionPlan> to_bf16)
      : weights_(c.weight.elements()), plan_(std::move(to_bf16)) {}

  int64_t workspace_bytes() const override {
    return own_bytes() + Scratch::rounded(plan_->workspace_bytes());
  }

  void run(Context& context, const void* x, const void* dw, const void* dy, std::byte* at) const override {
    const auto* rounded = reinterpret_cast<const Bf16*>(at);
    plan_->run(context, x, rounded, dy, at + own_bytes());
    convert(stream_of(context), weights_, rounded, static_cast<float*>(const_cast<void*>(dw)));
  }

 private:
  int64_t own_bytes() const { return Scratch::rounded(weights_ * int64_t(sizeof(Bf16))); }

  const int64_t weights_;
  const std::shared_ptr<const ConvolutionPlan> plan_;
};

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
  if (rounds_weight_gradients())
    if (auto rounded = plan_rounded_weight_gradient(c)) return rounded;
  return plan_widened(c, plan(widened(c), Pass::weight_gradient, Factors::tf32));
}

std::shared_ptr<const ConvolutionPlan> plan_rounded_weight_gradient(const Convolution& c) {
  Convolution to_bf16 = c;
  to_bf16.gradient = DType::bf16;
  auto plan = plan_by_cudnn(to_bf16, Pass::weight_gradient, Factors::exact);
  return plan ? std::make_shared<RoundedPlan>(c, std::move(plan)) : nullptr;
}

std::shared_ptr<const ConvolutionPlan> plan_widened(const Convolution& c,
                                                    std::shared_ptr<const ConvolutionPlan> of_float32) {
  return std::make_shared<WidenedPlan>(c, std::move(of_float32));
}

Convolution widened(Convolution c) {
  c.dtype = DType::f32;
  return c;
}

}  // namespace antichain::cuda
