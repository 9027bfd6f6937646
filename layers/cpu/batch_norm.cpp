// Batch normalisation processes one block of channels after the other, each by one thread from start to end;
// the loops are in batch_norm_loops. Every tensor is read once for the statistics (or sums) and once for the
// result.
//
// Numbers that exist once per channel are computed in double: mean and variance are stashed that way for
// backward, and the error of rounding the mean to float is added back to the shift. An error of such a number
// is the same for all elements of a channel. Deep networks amplify such errors, but not the roundings of
// single elements.
//
// Input gradient, d(weight) and d(bias) come out of one computation, so the halves of backward are
// inseparable.
#include "layers/batch_norm.h"

#include <cmath>
#include <optional>
#include <type_traits>

#include "layers/cpu/activation.h"
#include "layers/cpu/batch_norm_loops.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

constexpr int most = 16;  // channels of a block

// Returns nothing where the loops have no such function.
std::optional<After> after(const BatchNormOptions& options) {
  if (!options.activation) return options.relu ? After::relu : After::nothing;
  switch (*options.activation) {
    case ActivationFunction::relu6:
      return After::relu6;
    case ActivationFunction::hardswish:
      return After::hardswish;
    case ActivationFunction::silu:
      return After::silu;
    default:
      return std::nullopt;
  }
}

template <class T>
class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const BatchNormOptions& options, const TensorSpec& x)
      : options_(options),
        after_(after(options).value()),
        x_(x),
        planes_{.images = x_.images,
                .stride = x_.blocks * x_.plane(),
                .size = x_.plane(),
                .block = int(x_.block)},
        loops_(best_loops<BatchNormLoops<T>>()) {}

  void forward(Context& context, const Forward& f) const override {
    for_each_plane(x_.blocks, context.threads(), [&](int64_t block) {
      const Channels c = channels(block);
      const int64_t at = block * x_.plane();
      double mean[most], variance[most];
      if (f.mode == Mode::train && !options_.fixed_statistics) {
        loops_.moments(f.x[0].data<T>() + at, planes_, mean, variance);
        for (int64_t i = 0; i < c.count; ++i) variance[i] /= double(planes_.per_channel());
      } else {
        std::copy_n(f.buffers[0].data<float>() + c.first, c.count, mean);
        std::copy_n(f.buffers[1].data<float>() + c.first, c.count, variance);
      }
      if (f.mode == Mode::train)
        for (int64_t i = 0; i < c.count; ++i) keep(f, c.first + i, mean[i], variance[i]);
      const ForwardPass<T> pass{.x = f.x[0].data<T>() + at,
                                .residual = options_.add ? f.x[1].data<T>() + at : nullptr,
                                .y = f.y.data<T>() + at,
                                .after = after_};
      loops_.normalise(pass, planes_, normal(c, mean, variance, f.params));
    });
  }

  void backward(Context& context, const Backward& b) const override {
    for_each_plane(x_.blocks, context.threads(), [&](int64_t block) { backward(block, b); });
  }

  std::optional<RunningAverages> running_averages() const override {
    const double n = double(planes_.per_channel());
    return RunningAverages{options_.momentum, float(n / (n - 1))};
  }

  // The running variance is the unbiased one, as PyTorch has it.
  void absorb(Context&, std::span<const std::vector<Tensor>> statistics,
              std::span<const Tensor> buffers) const override {
    const auto [momentum, unbias] = *running_averages();
    float *running_mean = buffers[0].data<float>(), *running_var = buffers[1].data<float>();
    for (const std::vector<Tensor>& of_microbatch : statistics) {
      const float *mean = of_microbatch[0].data<float>(), *variance = of_microbatch[1].data<float>();
      for (int64_t c = 0; c < x_.channels; ++c) {
        running_mean[c] = (1 - momentum) * running_mean[c] + momentum * mean[c];
        running_var[c] = (1 - momentum) * running_var[c] + momentum * (variance[c] * unbias);
      }
    }
    *buffers[2].data<int32_t>() += int32_t(statistics.size());
  }

  bool inseparable() const override { return true; }

 private:
  struct Channels {  // real ones of a block; the others are padding and get constants 0
    int64_t first, count;
  };
  Channels channels(int64_t block) const {
    const int64_t first = block * x_.block;
    return {first, std::min(x_.block, x_.channels - first)};
  }

  void keep(const Forward& f, int64_t channel, double mean, double variance) const {
    if (!options_.fixed_statistics) {
      f.statistics[0].data<float>()[channel] = float(mean);
      f.statistics[1].data<float>()[channel] = float(variance);
    }
    f.stash[0].data<double>()[channel] = mean;
    f.stash[0].data<double>()[x_.channels + channel] = variance;
  }

  void set(Lanes& lanes, int64_t channel, double value) const {
    for (int64_t l = channel; l < most; l += x_.block) lanes.at[l] = float(value);
  }

  static double param(std::span<const Tensor> params, size_t i, int64_t channel, float otherwise) {
    return params.empty() ? otherwise : params[i].data<float>()[channel];
  }

  double inverse(double variance) const { return 1 / std::sqrt(variance + double(options_.eps)); }

  Normal normal(const Channels& c, const double* mean, const double* variance,
                std::span<const Tensor> params) const {
    Normal n;
    for (int64_t i = 0; i < c.count; ++i) {
      const double scale = param(params, 0, c.first + i, 1) * inverse(variance[i]);
      set(n.mean, i, mean[i]);
      set(n.scale, i, scale);
      set(n.shift, i, param(params, 1, c.first + i, 0) + (double(float(mean[i])) - mean[i]) * scale);
    }
    return n;
  }

  // Ioffe & Szegedy 2015, the chain rule of section 3, gathered: with x̂ = (x − mean) / sqrt(variance + eps),
  //   dx = weight / sqrt(variance + eps) · (dy − Σ dy / n − x̂ · Σ (dy · x̂) / n)
  // Statistics that are fixed do not depend on x, as if they were those of infinitely many numbers.
  void backward(int64_t block, const Backward& b) const {
    const Channels c = channels(block);
    const double *mean = b.stash[0].data<double>() + c.first, *variance = mean + x_.channels;
    const Normal normed_by = normal(c, mean, variance, b.made_by());
    BackwardPass<T> pass = pass_of(block, b);
    double sum[most], product[most];
    loops_.sums(pass, planes_, normed_by, sum, product);
    Gradient g;
    for (int64_t i = 0; i < c.count; ++i) {
      const double inverse = this->inverse(variance[i]), off = double(float(mean[i])) - mean[i];
      const double normed = (product[i] + off * sum[i]) * inverse;  // Σ dy · x̂
      const double a = param(b.params, 0, c.first + i, 1) * inverse;
      const double n = options_.fixed_statistics ? HUGE_VAL : double(planes_.per_channel());
      const double slope = -a * inverse * normed / n;
      set(g.a, i, a);
      set(g.b, i, slope);
      set(g.c, i, slope * off - a * sum[i] / n);
      fold(b, 0, c.first + i, normed);
      fold(b, 1, c.first + i, sum[i]);
    }
    if (!pass.dx) return;
    if (pass.dresidual && !pass.add_dresidual) {  // it is the dy that passed
      pass.dy = pass.dresidual;
      pass.mask = Mask::none;
    }
    loops_.gradient(pass, planes_, normed_by, g);
  }

  BackwardPass<T> pass_of(int64_t block, const Backward& b) const {
    const int64_t at = block * x_.plane();
    const auto from = [&](const Tensor& t) { return t ? t.data<T>() + at : nullptr; };
    BackwardPass<T> pass{.x = from(b.x[0]), .dy = from(b.dy), .y = from(b.y)};
    if (!b.dx.empty()) {
      pass.dx = from(b.dx[0]);
      pass.add_dx = b.into_dx(0) == Into::accumulate;
    }
    if (options_.add && !b.dx.empty()) {
      pass.dresidual = from(b.dx[1]);
      pass.add_dresidual = b.into_dx(1) == Into::accumulate;
    }
    pass.after = after_;
    // The gradient that passed SiLU costs more to compute twice than to keep in dx until dx is written. In
    // bf16 that would round it, and dx would come from another gradient than the sums.
    const bool keep = after_ == After::silu && std::is_same_v<T, float>;
    if (keep && pass.dx && !pass.add_dx) pass.dresidual = pass.dx;
    if (after_ != After::nothing) pass.mask = options_.add ? Mask::read : Mask::recompute;
    return pass;
  }

  void fold(const Backward& b, size_t param, int64_t channel, double value) const {
    if (param >= b.dw.size() || !b.dw[param]) return;
    float& dw = b.dw[param].data<float>()[channel];
    dw = b.into == Into::overwrite ? float(value) : dw + float(value);
  }

  const BatchNormOptions options_;
  const After after_;
  const Activation x_;
  const Planes planes_;
  const BatchNormLoops<T>& loops_;
};

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
  const BatchNormOptions& options = dynamic_cast<const BatchNorm&>(op).options;
  const Layout layout = accept(offered[0]);
  return {.x = std::vector<Layout>(x.size(), layout),
          .y = layout,
          .params = std::vector<Layout>(options.affine ? 2 : 0, Layout::plain),
          .precision = precision,
          .stash = {{.shape = {2, x[0][1]}, .dtype = DType::f64}},  // mean, variance
          .keeps_x = true,
          .keeps_y = options.add && options.relu,
          .kept_inputs = 1,
          .adds_dx = true};
}

}  // namespace

KernelEntry batch_norm_entry() {
  return {
      .lower = lower,
      .make =
          [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<BatchNormKernel>(x[0].dtype, dynamic_cast<const BatchNorm&>(op).options, x[0]);
          },
      .fuses = [](const Op& op) { return after(dynamic_cast<const BatchNorm&>(op).options).has_value(); }};
}

}  // namespace antichain::cpu
