#include "layers/cuda/convolution.h"

#include "layers/cuda/loops.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/transpose.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// Runs a plan that works in NCHW between operands in NHWC, all of type T.
template <class T>
class ReorderedPlan : public ConvolutionPlan {
 public:
  ReorderedPlan(std::shared_ptr<const ConvolutionPlan> plan, const Convolution& c, Pass pass)
      : plan_(std::move(plan)), x_(c.x), weight_(c.weight), y_(c.y), pass_(pass) {}

  int64_t workspace_bytes() const override {
    return bytes_of(x_) + bytes_of(weight_) + bytes_of(y_) + Scratch::rounded(plan_->workspace_bytes());
  }

  void run(Context& context, const void* x, const void* weight, const void* y, std::byte* at) const override {
    const Stream stream = stream_of(context);
    auto* plain_x = reinterpret_cast<T*>(at);
    auto* plain_weight = reinterpret_cast<T*>(at += bytes_of(x_));
    auto* plain_y = reinterpret_cast<T*>(at += bytes_of(weight_));
    at += bytes_of(y_);
    const auto in = [&](const Shape& shape, const void* nhwc, T* plain) {
      to_nchw(stream, Image(shape), static_cast<const T*>(nhwc), plain);
    };
    const auto out = [&](const Shape& shape, const T* plain, const void* nhwc) {
      to_nhwc(stream, Image(shape), plain, static_cast<T*>(const_cast<void*>(nhwc)));
    };
    if (pass_ != Pass::input_gradient) in(x_, x, plain_x);
    if (pass_ != Pass::weight_gradient) in(weight_, weight, plain_weight);
    if (pass_ != Pass::forward) in(y_, y, plain_y);
    plan_->run(context, plain_x, plain_weight, plain_y, at);
    if (pass_ == Pass::input_gradient) out(x_, plain_x, x);
    if (pass_ == Pass::weight_gradient) out(weight_, plain_weight, weight);
    if (pass_ == Pass::forward) out(y_, plain_y, y);
  }

 private:
  static int64_t bytes_of(const Shape& shape) {
    return Scratch::rounded(shape.elements() * int64_t(sizeof(T)));
  }

  const std::shared_ptr<const ConvolutionPlan> plan_;
  const Shape x_, weight_, y_;
  const Pass pass_;
};

}  // namespace

std::shared_ptr<const ConvolutionPlan> plan_reordered(const Convolution& c, Pass pass,
                                                      std::shared_ptr<const ConvolutionPlan> nchw) {
  std::shared_ptr<const ConvolutionPlan> plan;
  with_type(c.dtype, [&]<class T>() { plan = std::make_shared<ReorderedPlan<T>>(std::move(nchw), c, pass); });
  return plan;
}

std::shared_ptr<const ConvolutionPlan> plan(const Convolution& c, Pass pass, Factors factors) {
  if (by_loops(Library::cudnn)) return plan_directly(c, pass);
  if (c.dtype == DType::bf16 && pass == Pass::weight_gradient) return plan_bf16_weight_gradient(c);
  if (auto nhwc = plan_by_cudnn(c, pass, Layout::nhwc, factors)) return nhwc;
  if (auto nchw = plan_by_cudnn(c, pass, Layout::plain, factors))
    return plan_reordered(c, pass, std::move(nchw));
  return plan_directly(c, pass);
}

}  // namespace antichain::cuda
