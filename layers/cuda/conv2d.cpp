// Convolution: three planned passes, and the bias. Weights and activations lie in NHWC.
//
// In bf16 forward and input gradient read a copy of the weights, which is made once a step. The bias is added to what the
// convolution has rounded to bf16, and the sum is rounded again.
#include "layers/conv2d.h"

#include <algorithm>

#include "layers/cuda/bias.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/transpose.h"
#include "layers/typed.h"

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

  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    if (!prepared.empty())
      convert(stream_of(context), weights_, params[0].data<float>(), prepared[0].data<Bf16>());
  }

  void forward(Context& context, const Forward& f) const override {
    run(context, *forward_, f.x[0], f.prepared.empty() ? f.params[0] : f.prepared[0], f.y);
    if (!has_bias_) return;
    with_type(f.y.dtype(), [&]<class T>() {
      add_bias(stream_of(context), f.y.elements(), runs_.channels, f.y.data<T>(), f.params[1].data<float>(),
               f.y.data<T>());
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (!b.dw.empty() && b.dw[0]) weight_gradient(context, b);
    if (has_bias_ && b.dw.size() > 1 && b.dw[1]) {
      Scratch scratch(context, bias_bytes());
      auto* partials = scratch.take<double>(runs_.partials());
      with_type(b.dy.dtype(), [&]<class T>() {
        sum_bias(stream_of(context), runs_, b.dy.data<T>(), partials, b.dw[1].data<float>(),
                 b.into == Into::accumulate);
      });
    }
    if (!b.dx.empty() && b.dx[0])
      run(context, *input_, b.dx[0], b.prepared.empty() ? b.params[0] : b.prepared[0], b.dy);
  }

 private:
  int64_t fresh_bytes() const { return Scratch::rounded(weights_ * int64_t(sizeof(float))); }
  int64_t bias_bytes() const {
    return has_bias_ ? Scratch::rounded(runs_.partials() * int64_t(sizeof(double))) : 0;
  }

  static void run(Context& context, const ConvolutionPlan& plan, const Tensor& x, const Tensor& weight,
                  const Tensor& y) {
    const int64_t bytes = plan.workspace_bytes();
    plan.run(context, x.raw(), weight.raw(), y.raw(), bytes > 0 ? context.workspace(bytes) : nullptr);
  }

  // A micro-batch's gradient, overwritten or computed beside what it is added to.
  void weight_gradient(Context& context, const Backward& b) const {
    if (b.into == Into::overwrite) return run(context, *weight_, b.x[0], b.dw[0], b.dy);
    const int64_t bytes = Scratch::rounded(weight_->workspace_bytes());
    Scratch scratch(context, fresh_bytes() + bytes);
    auto* fresh = scratch.take<float>(weights_);
    weight_->run(context, b.x[0].raw(), fresh, b.dy.raw(), scratch.take<std::byte>(bytes));
    accumulate(stream_of(context), weights_, fresh, b.dw[0].data<float>());
  }

  const bool has_bias_;
  const int64_t weights_;
  const Runs runs_;
  const std::shared_ptr<const ConvolutionPlan> forward_, input_, weight_;
};

}  // namespace

KernelEntry conv2d_entry(Factors factors) {
  return {
      .lower =
          [factors](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            const auto& conv = dynamic_cast<const Conv2d&>(op);
            const Convolution c(conv, x[0], precision);
            Lowering l{.x = {Layout::nhwc},
                       .y = Layout::nhwc,
                       .params = {Layout::nhwc},
                       .precision = precision,
                       .keeps_x = true};
            if (conv.options.bias) l.params.push_back(Layout::plain);
            if (c.dtype == DType::bf16) {
              l.prepared = {{c.weight, DType::bf16, Layout::nhwc}};
              l.prepared_rounded = true;
            }
            l.workspace_bytes = Conv2dKernel(conv, c, factors).workspace_bytes();
            return l;
          },
      .make = [factors](const Op& op, std::span<const TensorSpec> x,
                        const Lowering& lowering) -> std::unique_ptr<Kernel> {
        const auto& conv = dynamic_cast<const Conv2d&>(op);
        return std::make_unique<Conv2dKernel>(conv, Convolution(conv, x[0].shape, lowering.precision),
                                              factors);
      }};
}

}  // namespace antichain::cuda
