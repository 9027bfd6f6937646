// Fully connected layers by oneDNN's inner product, all in plain row-major order.
#include "layers/linear.h"

#include <algorithm>

#include "layers/cpu/adapted.h"
#include "layers/cpu/backend.h"

namespace antichain::cpu {
namespace {

using ForwardDesc = dnnl::inner_product_forward::primitive_desc;
using BackwardDataDesc = dnnl::inner_product_backward_data::primitive_desc;
using BackwardWeightsDesc = dnnl::inner_product_backward_weights::primitive_desc;

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
    return std::max({forward_.scratch_bytes(), backward_data_.scratch_bytes(), weights_workspace_bytes()});
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
    if (!b.dw.empty()) backward_weights(context, b);
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
    using W = dnnl::inner_product_backward_weights::desc;
    const ForwardDesc forward(has_bias_ ? F(prop_kind::forward_training, x_, w_, bias_, y_)
                                        : F(prop_kind::forward_training, x_, w_, y_),
                              user_scratchpad(), engine());
    forward_ = Primitive("create a linear layer", forward);
    backward_data_ = Primitive("create a linear layer's input gradient",
                               BackwardDataDesc({x_, w_, y_}, user_scratchpad(), engine(), forward));
    backward_weights_ = Primitive("create a linear layer's weight gradient",
                                  BackwardWeightsDesc(has_bias_ ? W(x_, w_, bias_, y_) : W(x_, w_, y_),
                                                      user_scratchpad(), engine(), forward));
  }

  int64_t weights_workspace_bytes() const {
    return backward_weights_.scratch_bytes() + Workspace::rounded(int64_t(w_.get_size())) +
           Workspace::rounded(int64_t(bias_.get_size()));
  }

  // One gradient's destination: its own tensor, or the workspace where it is to be added or thrown away.
  static std::byte* destination(Workspace& workspace, const Tensor& d, const Desc& desc, Into into) {
    return d && into == Into::overwrite ? d.raw() : workspace.take(int64_t(desc.get_size()));
  }

  void backward_weights(Context& context, const Backward& b) const {
    Workspace workspace(context, weights_workspace_bytes());
    std::vector<Argument> arguments = {
        {DNNL_ARG_DIFF_WEIGHTS, w_, destination(workspace, b.dw[0], w_, b.into)}};
    if (has_bias_)
      arguments.push_back({DNNL_ARG_DIFF_BIAS, bias_, destination(workspace, b.dw[1], bias_, b.into)});
    const size_t gradients = arguments.size();
    arguments.push_back({DNNL_ARG_SRC, x_, b.x[0].raw()});
    arguments.push_back({DNNL_ARG_DIFF_DST, y_, b.dy.raw()});
    backward_weights_.run(workspace, arguments);
    for (size_t i = 0; b.into == Into::accumulate && i < gradients; ++i)
      if (b.dw[i])
        accumulate(static_cast<const float*>(arguments[i].data), b.dw[i].data<float>(), b.dw[i].elements());
  }

  bool has_bias_;
  Desc x_, w_, bias_, y_;
  Primitive forward_, backward_data_, backward_weights_;
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
