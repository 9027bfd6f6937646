// Convolution: three planned passes, and the bias. Weights and activations lie in NHWC.
#include "layers/conv2d.h"

#include <algorithm>

#include "layers/cuda/bias.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/scratch.h"

namespace antichain::cuda {
namespace {

class Conv2dKernel : public Kernel {
 public:
  Conv2dKernel(const Conv2d& op, const Convolution& c, Factors factors)
      : has_bias_(op.options.bias),
        weights_(c.weight.elements()),
        runs_(c.y.elements() / c.y[1], c.y[1]),
        forward_(plan(c, Pass::forward, factors)),
        input_(plan(c, Pass::input_gradient, factors)),
        weight_(plan(c, Pass::weight_gradient, factors)) {}

  int64_t workspace_bytes() const {
    const int64_t weight = fresh_bytes() + Scratch::rounded(weight_->workspace_bytes());
    return std::max({Scratch::rounded(forward_->workspace_bytes()),
                     Scratch::rounded(input_->workspace_bytes()), weight, bias_bytes()});
  }

  void forward(Context& context, const Forward& f) const override {
    run(context, *forward_, f.x[0], f.params[0], f.y);
    if (has_bias_)
      add_bias(stream_of(context), f.y.elements(), runs_.channels, f.params[1].data<float>(),
               f.y.data<float>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (!b.dw.empty() && b.dw[0]) weight_gradient(context, b);
    if (has_bias_ && b.dw.size() > 1 && b.dw[1]) {
      Scratch scratch(context, bias_bytes());
      sum_bias(stream_of(context), runs_, b.dy.data<float>(), scratch.take<double>(runs_.partials()),
               b.dw[1].data<float>(), b.into == Into::accumulate);
    }
    if (!b.dx.empty() && b.dx[0]) run(context, *input_, b.dx[0], b.params[0], b.dy);
  }

 private:
  int64_t fresh_bytes() const { return Scratch::rounded(weights_ * int64_t(sizeof(float))); }
  int64_t bias_bytes() const {
    return has_bias_ ? Scratch::rounded(runs_.partials() * int64_t(sizeof(double))) : 0;
  }

  static void run(Context& context, const ConvolutionPlan& plan, const Tensor& x, const Tensor& weight,
                  const Tensor& y) {
    const int64_t bytes = plan.workspace_bytes();
    plan.run(context, x.data<float>(), weight.data<float>(), y.data<float>(),
             bytes > 0 ? context.workspace(bytes) : nullptr);
  }

  // A micro-batch's gradient, overwritten or computed beside what it is added to.
  void weight_gradient(Context& context, const Backward& b) const {
    if (b.into == Into::overwrite) return run(context, *weight_, b.x[0], b.dw[0], b.dy);
    const int64_t bytes = Scratch::rounded(weight_->workspace_bytes());
    Scratch scratch(context, fresh_bytes() + bytes);
    auto* fresh = scratch.take<float>(weights_);
    weight_->run(context, b.x[0].data<float>(), fresh, b.dy.data<float>(), scratch.take<std::byte>(bytes));
    accumulate(stream_of(context), weights_, fresh, b.dw[0].data<float>());
  }

  const bool has_bias_;
  const int64_t weights_;
  const Runs runs_;
  const std::shared_ptr<const ConvolutionPlan> forward_, input_, weight_;
};

}  // namespace

KernelEntry conv2d_entry(Factors factors) {
  return {.lower =
              [factors](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision) {
                const auto& conv = dynamic_cast<const Conv2d&>(op);
                Lowering l{.x = {Layout::nhwc}, .y = Layout::nhwc, .params = {Layout::nhwc}, .keeps_x = true};
                if (conv.options.bias) l.params.push_back(Layout::plain);
                l.workspace_bytes = Conv2dKernel(conv, Convolution(conv, x[0]), factors).workspace_bytes();
                return l;
              },
          .make = [factors](const Op& op, std::span<const TensorSpec> x,
                            const Lowering&) -> std::unique_ptr<Kernel> {
            const auto& conv = dynamic_cast<const Conv2d&>(op);
            return std::make_unique<Conv2dKernel>(conv, Convolution(conv, x[0].shape), factors);
          }};
}

}  // namespace antichain::cuda
