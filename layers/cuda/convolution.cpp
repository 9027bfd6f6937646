#include "layers/cuda/convolution.h"

#include "layers/cuda/scratch.h"
#include "layers/cuda/transpose.h"

namespace antichain::cuda {
namespace {

int64_t bytes_of(const Shape& shape) { return Scratch::rounded(shape.elements() * int64_t(sizeof(float))); }

// A plan that works in NCHW, between operands in NHWC.
class ReorderedPlan : public ConvolutionPlan {
 public:
  ReorderedPlan(std::shared_ptr<const ConvolutionPlan> plan, const Convolution& c, Pass pass)
      : plan_(std::move(plan)), x_(c.x), weight_(c.weight), y_(c.y), pass_(pass) {}

  int64_t workspace_bytes() const override {
    return bytes_of(x_) + bytes_of(weight_) + bytes_of(y_) + Scratch::rounded(plan_->workspace_bytes());
  }

  void run(Context& context, const float* x, const float* weight, const float* y,
           std::byte* at) const override {
    const Stream stream = stream_of(context);
    auto* plain_x = reinterpret_cast<float*>(at);
    auto* plain_weight = reinterpret_cast<float*>(at += bytes_of(x_));
    auto* plain_y = reinterpret_cast<float*>(at += bytes_of(weight_));
    at += bytes_of(y_);
    if (pass_ != Pass::input_gradient) to_nchw(stream, Image(x_), x, plain_x);
    if (pass_ != Pass::weight_gradient) to_nchw(stream, Image(weight_), weight, plain_weight);
    if (pass_ != Pass::forward) to_nchw(stream, Image(y_), y, plain_y);
    plan_->run(context, plain_x, plain_weight, plain_y, at);
    if (pass_ == Pass::input_gradient) to_nhwc(stream, Image(x_), plain_x, const_cast<float*>(x));
    if (pass_ == Pass::weight_gradient)
      to_nhwc(stream, Image(weight_), plain_weight, const_cast<float*>(weight));
    if (pass_ == Pass::forward) to_nhwc(stream, Image(y_), plain_y, const_cast<float*>(y));
  }

 private:
  const std::shared_ptr<const ConvolutionPlan> plan_;
  const Shape x_, weight_, y_;
  const Pass pass_;
};

}  // namespace

std::shared_ptr<const ConvolutionPlan> plan(const Convolution& c, Pass pass, Factors factors) {
  if (auto nhwc = plan_by_cudnn(c, pass, Layout::nhwc, factors)) return nhwc;
  if (auto nchw = plan_by_cudnn(c, pass, Layout::plain, factors))
    return std::make_shared<ReorderedPlan>(std::move(nchw), c, pass);
  return plan_directly(c, pass);
}

}  // namespace antichain::cuda
