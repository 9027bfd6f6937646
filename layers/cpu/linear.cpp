// Fully connected layers by oneDNN's inner product and matrix product, all in plain row-major order.
#include "layers/linear.h"

#include <algorithm>

#include "framework/error.h"
#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"

namespace antichain::cpu {
namespace {

using ForwardDesc = dnnl::inner_product_forward::primitive_desc;
using BackwardDataDesc = dnnl::inner_product_backward_data::primitive_desc;

class LinearKernel : public Kernel {
 public:
  LinearKernel(const Linear& op, const Shape& x)
      : has_bias_(op.options.bias),
        x_(describe_plain({x[0], x[1]})),
        w_(describe_plain({op.options.out, x[1]})),
        bias_(describe_plain({op.options.out})),
        y_(describe_plain({x[0], op.options.out})) {
    checked("create a linear layer", [&] { create(); });
  }

  int64_t workspace_bytes() const {
    return std::max(forward_.scratch_bytes(), backward_data_.scratch_bytes());
  }

  void forward(Context& context, const Forward& f) const override {
    Workspace workspace(context, forward_.scratch_bytes());
    std::vector<Argument> arguments = {{DNNL_ARG_SRC, x_, f.x[0].raw()},
                                       {DNNL_ARG_WEIGHTS, w_, f.params[0].raw()},
                                       {DNNL_ARG_DST, y_, f.y.raw()}};
    if (has_bias_) arguments.push_back({DNNL_ARG_BIAS, bias_, f.params[1].raw()});
    forward_.run(workspace, arguments);
  }

  void backward(Context& context, const Backward& b) const override {
    if (!b.dw.empty()) backward_weights(b);
    if (b.dx.empty() || !b.dx[0]) return;
    Workspace workspace(context, backward_data_.scratch_bytes());
    backward_data_.run(workspace, {{DNNL_ARG_DIFF_SRC, x_, b.dx[0].raw()},
                                   {DNNL_ARG_WEIGHTS, w_, b.params[0].raw()},
                                   {DNNL_ARG_DIFF_DST, y_, b.dy.raw()}});
  }

 private:
  void create() {
    using dnnl::prop_kind;
    using F = dnnl::inner_product_forward::desc;
    const ForwardDesc forward(has_bias_ ? F(prop_kind::forward_training, x_, w_, bias_, y_)
                                        : F(prop_kind::forward_training, x_, w_, y_),
                              user_scratchpad(), engine());
    forward_ = Primitive("create a linear layer", forward);
    backward_data_ = Primitive("create a linear layer's input gradient",
                               BackwardDataDesc({x_, w_, y_}, user_scratchpad(), engine(), forward));
  }

  // Straight into the gradients, whether they are overwritten or added to: no workspace as large as the weights.
  void backward_weights(const Backward& b) const {
    const int64_t n = x_.dims()[0], in = x_.dims()[1], out = y_.dims()[1];
    const bool adds = b.into == Into::accumulate;
    const float* dy = b.dy.data<float>();
    if (b.dw[0]) {  // dw (out x in) = dyᵀ · x
      const auto status = dnnl::sgemm('T', 'N', out, in, n, 1, dy, out, b.x[0].data<float>(), in,
                                      adds ? 1.0f : 0.0f, b.dw[0].data<float>(), in);
      ANTICHAIN_CHECK(status == dnnl::status::success, "oneDNN multiplies two matrices");
    }
    if (!has_bias_ || b.dw.size() < 2 || !b.dw[1]) return;
    float* db = b.dw[1].data<float>();
    for (int64_t k = 0; k < out; ++k) {
      double sum = adds ? db[k] : 0;
      for (int64_t i = 0; i < n; ++i) sum += dy[i * out + k];
      db[k] = float(sum);
    }
  }

  bool has_bias_;
  Desc x_, w_, bias_, y_;
  Primitive forward_, backward_data_;
};

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout>) {
  const auto& linear = dynamic_cast<const Linear&>(op);
  Lowering l;
  l.x = {Layout::plain};
  l.params.assign(linear.options.bias ? 2 : 1, Layout::plain);
  l.keeps_x = true;
  l.workspace_bytes = LinearKernel(linear, x[0]).workspace_bytes();
  return l;
}

}  // namespace

KernelEntry linear_entry() {
  return {lower, [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return std::make_unique<LinearKernel>(dynamic_cast<const Linear&>(op), x[0].shape);
          }};
}

}  // namespace antichain::cpu
