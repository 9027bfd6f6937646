// Convolution has three planned passes, and one of ours for bias and ReLU. Weights and activations are in
// NHWC.
//
// In bf16 forward and input gradient read a copy of the weights, which is made once a step. The bias is added
// to the convolution's result, which has been rounded to bf16, and the sum is rounded again.
#include "layers/conv2d.h"

#include <algorithm>

#include "layers/cuda/convert.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/epilogue.h"
#include "layers/cuda/scratch.h"

namespace antichain::cuda {
namespace {

class Conv2dKernel : public Kernel {
 public:
  Conv2dKernel(const Conv2d& op, const Convolution& c, Factors factors)
      : dtype_(c.dtype),
        weights_(c.weight.elements()),
        epilogue_(op.options.bias, op.options.relu, c.y, c.dtype),
        forward_(plan(c, Pass::forward, factors)),
        input_(plan(c, Pass::input_gradient, factors)),
        weight_(plan(c, Pass::weight_gradient, factors)) {}

  int64_t workspace_bytes() const {
    return std::max(Scratch::rounded(forward_->workspace_bytes()), backward_bytes());
  }

  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    if (!prepared.empty())
      convert(stream_of(context), weights_, params[0].data<float>(), prepared[0].data<Bf16>());
  }

  void forward(Context& context, const Forward& f) const override {
    Scratch scratch(context, Scratch::rounded(forward_->workspace_bytes()));
    const Tensor& weight = f.prepared.empty() ? f.params[0] : f.prepared[0];
    run(context, scratch, *forward_, f.x[0].raw(), weight.raw(), f.y.raw());
    epilogue_.forward(context, f.y.raw(), dtype_, f);
  }

  void backward(Context& context, const Backward& b) const override {
    Scratch scratch(context, backward_bytes());
    const std::byte* dproduct = epilogue_.backward(context, scratch, b);
    if (!b.dw.empty() && b.dw[0]) weight_gradient(context, scratch, b, dproduct);
    if (b.dx.empty() || !b.dx[0]) return;
    const Tensor& weight = b.prepared.empty() ? b.params[0] : b.prepared[0];
    run(context, scratch, *input_, b.dx[0].raw(), weight.raw(), dproduct);
  }

 private:
  int64_t fresh_bytes() const { return Scratch::rounded(weights_ * int64_t(sizeof(float))); }
  int64_t backward_bytes() const {
    const int64_t weight = fresh_bytes() + Scratch::rounded(weight_->workspace_bytes());
    return epilogue_.backward_bytes() + std::max(Scratch::rounded(input_->workspace_bytes()), weight);
  }

  // The scratch is passed by value: the next pass may use the same bytes.
  static void run(Context& context, Scratch scratch, const ConvolutionPlan& plan, const void* x,
                  const void* weight, const void* y) {
    plan.run(context, x, weight, y, scratch.take<std::byte>(plan.workspace_bytes()));
  }

  // Computes a micro-batch's gradient, which overwrites dw, or is computed beside dw and then added to it.
  void weight_gradient(Context& context, Scratch scratch, const Backward& b,
                       const std::byte* dproduct) const {
    float* dw = b.dw[0].data<float>();
    const bool fresh = b.into == Into::overwrite;
    float* to = fresh ? dw : scratch.take<float>(weights_);
    run(context, scratch, *weight_, b.x[0].raw(), to, dproduct);
    if (!fresh) accumulate(stream_of(context), weights_, to, dw);
  }

  const DType dtype_;
  const int64_t weights_;
  const Epilogue epilogue_;
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
                       .params = {conv.options.matrix ? Layout::plain : Layout::nhwc},
                       .precision = precision,
                       .keeps_x = true,
                       .keeps_y = conv.options.relu};
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
      },
      .fuses = [](const Op&) { return true; }};
}

}  // namespace antichain::cuda
