// Batch normalisation by oneDNN, on whatever layout comes in. Input gradient, d(weight) and d(bias) come out of
// one computation, so the halves of backward are inseparable.
#include "layers/batch_norm.h"

#include "layers/cpu/adapted.h"
#include "layers/cpu/backend.h"

namespace antichain::cpu {
namespace {

using dnnl::normalization_flags;
using dnnl::prop_kind;
const auto affine = normalization_flags::use_scale | normalization_flags::use_shift;

using ForwardDesc = dnnl::batch_normalization_forward::primitive_desc;
using BackwardDesc = dnnl::batch_normalization_backward::primitive_desc;

ForwardDesc forward_desc(const Desc& x, float eps, prop_kind kind, normalization_flags flags) {
  return checked("describe batch norm", [&] {
    return ForwardDesc({kind, x, eps, flags}, user_scratchpad(), engine());
  });
}

class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const BatchNorm& op, const TensorSpec& x)
      : options_(op.options), channels_(x.shape[1]), n_(x.shape.elements() / channels_), x_(describe(x)) {
    const ForwardDesc train = forward_desc(x_, options_.eps, prop_kind::forward_training, affine);
    const ForwardDesc evaluate = forward_desc(x_, options_.eps, prop_kind::forward_inference,
                                              affine | normalization_flags::use_global_stats);
    const BackwardDesc backward = checked("describe batch norm's gradient", [&] {
      return BackwardDesc({prop_kind::backward, x_, x_, options_.eps, affine}, user_scratchpad(), engine(),
                          train);
    });
    train_ = Primitive("create batch norm", train);
    evaluate_ = Primitive("create batch norm", evaluate);
    backward_ = Primitive("create batch norm's gradient", backward);
  }

  int64_t workspace_bytes() const {
    const int64_t forward = std::max(train_.scratch_bytes(), evaluate_.scratch_bytes());
    return std::max(forward, backward_workspace_bytes());
  }

  void forward(Context& context, const Forward& f) const override {
    const bool train = f.mode == Mode::train;
    const Primitive& primitive = train ? train_ : evaluate_;
    const std::span<const Tensor> moments = train ? f.statistics : f.buffers;
    Workspace workspace(context, primitive.scratch_bytes());
    primitive.run(workspace, {{DNNL_ARG_SRC, x_, f.x[0].raw()},
                              {DNNL_ARG_MEAN, per_channel_, moments[0].raw()},
                              {DNNL_ARG_VARIANCE, per_channel_, moments[1].raw()},
                              {DNNL_ARG_SCALE, per_channel_, f.params[0].raw()},
                              {DNNL_ARG_SHIFT, per_channel_, f.params[1].raw()},
                              {DNNL_ARG_DST, x_, f.y.raw()}});
  }

  void backward(Context& context, const Backward& b) const override {
    Workspace workspace(context, backward_workspace_bytes());
    const int64_t bytes = channels_ * 4;
    std::byte* fresh[2] = {workspace.take(bytes), workspace.take(bytes)};
    std::byte* spare = workspace.take(int64_t(x_.get_size()));
    std::byte* dx = !b.dx.empty() && b.dx[0] ? b.dx[0].raw() : spare;
    backward_.run(workspace, {{DNNL_ARG_SRC, x_, b.x[0].raw()},
                              {DNNL_ARG_MEAN, per_channel_, b.statistics[0].raw()},
                              {DNNL_ARG_VARIANCE, per_channel_, b.statistics[1].raw()},
                              {DNNL_ARG_DIFF_DST, x_, b.dy.raw()},
                              {DNNL_ARG_SCALE, per_channel_, b.params[0].raw()},
                              {DNNL_ARG_SHIFT, per_channel_, b.params[1].raw()},
                              {DNNL_ARG_DIFF_SRC, x_, dx},
                              {DNNL_ARG_DIFF_SCALE, per_channel_, fresh[0]},
                              {DNNL_ARG_DIFF_SHIFT, per_channel_, fresh[1]}});
    for (size_t i = 0; i < b.dw.size(); ++i)
      if (b.dw[i]) fold(reinterpret_cast<float*>(fresh[i]), b.dw[i].data<float>(), b.into);
  }

  // The running variance is the unbiased one, as PyTorch has it.
  void absorb(Context&, std::span<const Tensor> statistics, std::span<const Tensor> buffers) const override {
    const float m = options_.momentum, unbias = float(double(n_) / double(n_ - 1));
    const float *mean = statistics[0].data<float>(), *variance = statistics[1].data<float>();
    float *running_mean = buffers[0].data<float>(), *running_var = buffers[1].data<float>();
    for (int64_t c = 0; c < channels_; ++c) {
      running_mean[c] = (1 - m) * running_mean[c] + m * mean[c];
      running_var[c] = (1 - m) * running_var[c] + m * (variance[c] * unbias);
    }
    ++*buffers[2].data<int32_t>();
  }

  bool inseparable() const override { return true; }

 private:
  int64_t backward_workspace_bytes() const {
    return backward_.scratch_bytes() + 2 * Workspace::rounded(channels_ * 4) +
           Workspace::rounded(int64_t(x_.get_size()));
  }
  void fold(const float* fresh, float* dw, Into into) const {
    if (into == Into::overwrite)
      std::copy(fresh, fresh + channels_, dw);
    else
      accumulate(fresh, dw, channels_);
  }

  BatchNormOptions options_;
  int64_t channels_, n_;  // n: values per channel, N H W
  Desc x_;
  Desc per_channel_ = describe_plain({channels_});
  Primitive train_, evaluate_, backward_;
};

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout> offered) {
  const Layout layout = accept(offered[0]);
  Lowering l;
  l.x = {layout};
  l.y = layout;
  l.params = {Layout::plain, Layout::plain};
  l.keeps_x = true;
  l.workspace_bytes =
      BatchNormKernel(dynamic_cast<const BatchNorm&>(op), {x[0], DType::f32, layout}).workspace_bytes();
  return l;
}

}  // namespace

KernelEntry batch_norm_entry() {
  return {lower, [](const Op& op, std::span<const TensorSpec> x, const Lowering& l) {
            return std::make_unique<BatchNormKernel>(dynamic_cast<const BatchNorm&>(op),
                                                     TensorSpec{x[0].shape, x[0].dtype, l.x[0]});
          }};
}

}  // namespace antichain::cpu
