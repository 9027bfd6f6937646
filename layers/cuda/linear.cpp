// Fully connected layers: three matrix products, each planned when the kernel is made, and sums for the bias.
#include "layers/linear.h"

#include <algorithm>

#include "layers/cuda/bias.h"
#include "layers/cuda/gemm.h"
#include "layers/cuda/scratch.h"

namespace antichain::cuda {

namespace {

class LinearKernel : public Kernel {
 public:
  LinearKernel(const Linear& op, const Shape& x, Factors factors)
      : has_bias_(op.options.bias), runs_(x[0], op.options.out) {
    const int64_t n = x[0], in = x[1], out = op.options.out;
    forward_ = make_gemm({.m = n, .n = out, .k = in, .transpose_b = true}, factors);
    input_ = make_gemm({.m = n, .n = in, .k = out}, factors);
    fresh_ = make_gemm({.m = out, .n = in, .k = n, .transpose_a = true}, factors);
    adding_ = make_gemm({.m = out, .n = in, .k = n, .transpose_a = true, .adds = true}, factors);
  }

  int64_t workspace_bytes() const {
    const int64_t products = std::max({forward_->workspace_bytes(), input_->workspace_bytes(),
                                       fresh_->workspace_bytes(), adding_->workspace_bytes()});
    return std::max(Scratch::rounded(products), bias_bytes());
  }

  void forward(Context& context, const Forward& f) const override {
    run(context, *forward_, f.x[0], f.params[0], f.y);
    if (has_bias_)
      add_bias(stream_of(context), f.y.elements(), runs_.channels, f.params[1].data<float>(),
               f.y.data<float>());
  }

  void backward(Context& context, const Backward& b) const override {
    const bool adds = b.into == Into::accumulate;
    if (!b.dw.empty() && b.dw[0]) run(context, adds ? *adding_ : *fresh_, b.dy, b.x[0], b.dw[0]);
    if (has_bias_ && b.dw.size() > 1 && b.dw[1]) {
      Scratch scratch(context, bias_bytes());
      sum_bias(stream_of(context), runs_, b.dy.data<float>(), scratch.take<double>(runs_.partials()),
               b.dw[1].data<float>(), adds);
    }
    if (!b.dx.empty() && b.dx[0]) run(context, *input_, b.dy, b.params[0], b.dx[0]);
  }

 private:
  int64_t bias_bytes() const {
    return has_bias_ ? Scratch::rounded(runs_.partials() * int64_t(sizeof(double))) : 0;
  }
  static void run(Context& context, const Gemm& gemm, const Tensor& a, const Tensor& b, const Tensor& c) {
    const int64_t bytes = gemm.workspace_bytes();
    gemm.run(context, a.data<float>(), b.data<float>(), c.data<float>(),
             bytes > 0 ? context.workspace(bytes) : nullptr);
  }

  const bool has_bias_;
  const Runs runs_;
  std::unique_ptr<const Gemm> forward_, input_, fresh_, adding_;
};

}  // namespace

KernelEntry linear_entry(Factors factors) {
  return {.lower =
              [factors](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision) {
                const auto& linear = dynamic_cast<const Linear&>(op);
                return Lowering{.x = {Layout::plain},
                                .params = std::vector<Layout>(linear.options.bias ? 2 : 1, Layout::plain),
                                .keeps_x = true,
                                .workspace_bytes = LinearKernel(linear, x[0], factors).workspace_bytes()};
              },
          .make = [factors](const Op& op, std::span<const TensorSpec> x,
                            const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<LinearKernel>(dynamic_cast<const Linear&>(op), x[0].shape, factors);
          }};
}

}  // namespace antichain::cuda
