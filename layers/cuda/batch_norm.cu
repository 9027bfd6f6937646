// Batch normalisation takes three launches each way: sums of runs of pixels, a fold that computes the
// channel's constants, and one pass over the elements, with the nodes that are fused behind it.
//
// As on the CPU, numbers that exist once per channel are computed in double: mean and variance are stashed
// that way for backward, and the error of rounding the mean to float is added back to the shift. Variances
// are sums of squared distances from the run's first pixel, merged by Chan's formula, so that nothing cancels
// however far the mean is from 0.
//
// Input gradient, d(weight) and d(bias) come out of one computation, so the halves of backward are
// inseparable.
#include "layers/batch_norm.h"

#include <cmath>

#include "framework/cuda/passes.h"
#include "layers/cuda/moments.h"
#include "layers/cuda/move.h"
#include "layers/cuda/normal.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct Params {
  const float *weight, *bias;  // nullptr: 1 and 0
  double eps;

  ANTICHAIN_ANYWHERE float weight_of(Index c) const { return weight ? weight[c] : 1.0f; }
  ANTICHAIN_ANYWHERE float bias_of(Index c) const { return bias ? bias[c] : 0.0f; }
};

// Kept says where a micro-batch's mean and variance go: float for the running statistics, double for
// backward.
struct Kept {
  float *mean, *variance;
  double *exact_mean, *exact_variance;
};

template <class T>
void take_moments(Stream stream, const PixelParts& parts, const T* x, const Partials<Moments>& partials,
                  const Params& params, const Kept& kept, const Normal& normal) {
  sum_channels<MomentsRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(MomentsRun & run, bool first, float number) { run.take(first, number); },
      [=] ANTICHAIN_DEVICE(Index c, const Moments& all) {
        const double variance = all.squares / all.n;
        kept.mean[c] = float(all.mean);
        kept.variance[c] = float(variance);
        kept.exact_mean[c] = all.mean;
        kept.exact_variance[c] = variance;
        normal.set(c, all.mean, variance, params.eps, params.weight_of(c), params.bias_of(c));
      },
      read(x));
}

// Where `exact` is not nullptr, keeps mean and variance there for backward.
void set_normal(Stream stream, Index channels, const float* mean, const float* variance, const Params& params,
                const Normal& normal, double* exact) {
  for_each(stream, channels, [=] ANTICHAIN_DEVICE(Index c) {
    if (exact) exact[c] = mean[c], exact[channels + c] = variance[c];
    normal.set(c, double(mean[c]), double(variance[c]), params.eps, params.weight_of(c), params.bias_of(c));
  });
}

template <class T>
struct ForwardPass {
  const T *x, *residual;  // residual: added to y, or nullptr
  T* y;
  bool relu;
};

// Each case has code of its own: nothing is decided, and nothing loaded, that the case does not need. A
// negative number alone becomes 0, which lets NaN through, to be seen.
template <class T, bool relu>
void normalise_alone(Stream stream, const PixelParts& parts, const ForwardPass<T>& pass,
                     const Normal& normal) {
  for_channels(
      stream, parts.pixels, parts.channels,
      [=] ANTICHAIN_DEVICE(float mean, float scale, float shift, float x, float& y) {
        y = (x - mean) * scale + shift;
        if (relu) y = y < 0 ? 0.0f : y;
      },
      channel(normal.mean), channel(normal.scale), channel(normal.shift), read(pass.x),
      write<Rounding::in_pairs>(pass.y));
}

template <class T, bool relu>
void normalise_and_add(Stream stream, const PixelParts& parts, const ForwardPass<T>& pass,
                       const Normal& normal) {
  for_channels(
      stream, parts.pixels, parts.channels,
      [=] ANTICHAIN_DEVICE(float mean, float scale, float shift, float x, float residual, float& y) {
        y = (x - mean) * scale + shift + residual;
        if (relu) y = y < 0 ? 0.0f : y;
      },
      channel(normal.mean), channel(normal.scale), channel(normal.shift), read(pass.x), read(pass.residual),
      write<Rounding::in_pairs>(pass.y));
}

template <class T>
void normalise(Stream stream, const PixelParts& parts, const ForwardPass<T>& pass, const Normal& normal) {
  if (pass.residual)
    (pass.relu ? normalise_and_add<T, true> : normalise_and_add<T, false>)(stream, parts, pass, normal);
  else
    (pass.relu ? normalise_alone<T, true> : normalise_alone<T, false>)(stream, parts, pass, normal);
}

// Says which elements' gradients pass the ReLU: those where y > 0. y is recomputed if that is cheaper than
// reading it.
enum class Mask { none, recompute, read };

template <class T>
struct BackwardPass {
  const T *x, *dy, *y;         // y: with Mask::read
  const T* dy_term;            // a second term of dy, or nullptr
  T *dx, *dresidual;           // nullptr: not wanted
  bool add_dx, add_dresidual;  // to what is there
  Mask mask;
};

// Returns whether the sums write the residual's gradient, which is the masked dy, where nothing was before.
template <class T>
bool leaves_dresidual(const BackwardPass<T>& pass) {
  return pass.mask == Mask::read && pass.dresidual && !pass.add_dresidual;
}

struct Passed {
  Mask mask;
  ANTICHAIN_ANYWHERE float operator()(float dy, float y, float centred, float scale, float shift) const {
    const bool stopped =
        (mask == Mask::recompute && !(centred * scale + shift > 0)) || (mask == Mask::read && !(y > 0));
    return stopped ? 0.0f : dy;
  }
};

// Gradient holds, per channel, the factors of dx = a · dy + (b · (x − mean) + c).
struct Gradient {
  float *a, *b, *c;
};

// Says where d(weight) and d(bias) go; nullptr: not wanted.
struct Into2 {
  float *weight, *bias;
  bool adds;
};

// Computes the sums, with code of its own for each case that networks have, and one code for all
// others. A case that is decided at compile time has 600 to 1200 instructions on sm_90. One
// code that decides for each number has 5000, more than an instruction cache holds.
template <class T, class Finish>
void sum_unmasked(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
                  const Partials<Pair>& partials, const Normal& normal, const Finish& finish) {
  sum_channels<PairRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(PairRun & run, bool, float m, float x, float dy) { run.take(dy, x - m); }, finish,
      channel(normal.mean), read(pass.x), read(pass.dy));
}

template <class T, class Finish>
void sum_recomputed(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
                    const Partials<Pair>& partials, const Normal& normal, const Finish& finish) {
  sum_channels<PairRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(PairRun & run, bool, float m, float scale, float shift, float x, float dy) {
        const float centred = x - m;
        run.take(centred * scale + shift > 0 ? dy : 0.0f, centred);
      },
      finish, channel(normal.mean), channel(normal.scale), channel(normal.shift), read(pass.x),
      read(pass.dy));
}

// The residual's gradient is what passes the ReLU.
template <class T, class Finish>
void sum_read(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
              const Partials<Pair>& partials, const Normal& normal, const Finish& finish) {
  sum_channels<PairRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(PairRun & run, bool, float m, float x, float dy, float y, float& dresidual) {
        dresidual = y > 0 ? dy : 0.0f;
        run.take(y > 0 ? dy : 0.0f, x - m);
      },
      finish, channel(normal.mean), read(pass.x), read(pass.dy), read(pass.y),
      write<Rounding::in_pairs>(pass.dresidual));
}

// Does the same where dy is still a sum of two terms. It is rounded for storage, as where it is stored.
template <class T, class Finish>
void sum_read_terms(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
                    const Partials<Pair>& partials, const Normal& normal, const Finish& finish) {
  sum_channels<PairRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(PairRun & run, bool, float m, float x, float dy, float term, float y,
                           float& dresidual) {
        dresidual = y > 0 ? float(T(dy + term)) : 0.0f;
        run.take(dresidual, x - m);
      },
      finish, channel(normal.mean), read(pass.x), read(pass.dy), read(pass.dy_term), read(pass.y),
      write<Rounding::in_pairs>(pass.dresidual));
}

template <class T, class Finish>
void sum_any(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
             const Partials<Pair>& partials, const Normal& normal, const Finish& finish) {
  const Passed passed{pass.mask};
  const bool add_dresidual = pass.add_dresidual;
  sum_channels<PairRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(PairRun & run, bool, float m, float scale, float shift, float x, float dy, float y,
                           float& dresidual) {
        const float centred = x - m, term = passed(dy, y, centred, scale, shift);
        dresidual = add_dresidual ? dresidual + term : term;
        run.take(term, centred);
      },
      finish, channel(normal.mean), channel(normal.scale), channel(normal.shift), read(pass.x), read(pass.dy),
      read(pass.y), into(pass.dresidual, add_dresidual));
}

// Ioffe & Szegedy 2015, the chain rule of section 3, gathered: with x̂ = (x − mean) / sqrt(variance + eps),
//   dx = weight / sqrt(variance + eps) · (dy − Σ dy / n − x̂ · Σ (dy · x̂) / n)
// Statistics that are fixed do not depend on x, as if they were those of infinitely many numbers n.
template <class T>
void take_sums(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
               const Partials<Pair>& partials, const Params& params, const double* mean,
               const double* variance, double n, const Normal& normal, const Gradient& gradient,
               const Into2& to) {
  const auto finish = [=] ANTICHAIN_DEVICE(Index c, const Pair& all) {
    const double inverse = 1 / sqrt(variance[c] + params.eps), off = double(float(mean[c])) - mean[c];
    const double normed = (all.product + off * all.sum) * inverse;  // Σ dy · x̂
    const double a = double(params.weight_of(c)) * inverse;
    const double slope = -a * inverse * normed / n;
    gradient.a[c] = float(a);
    gradient.b[c] = float(slope);
    gradient.c[c] = float(slope * off - a * all.sum / n);
    if (to.weight) to.weight[c] = to.adds ? to.weight[c] + float(normed) : float(normed);
    if (to.bias) to.bias[c] = to.adds ? to.bias[c] + float(all.sum) : float(all.sum);
  };
  if (leaves_dresidual(pass) && pass.dy_term)
    sum_read_terms(stream, parts, pass, partials, normal, finish);
  else if (leaves_dresidual(pass))
    sum_read(stream, parts, pass, partials, normal, finish);
  else if (pass.mask == Mask::none && !pass.dresidual)
    sum_unmasked(stream, parts, pass, partials, normal, finish);
  else if (pass.mask == Mask::recompute && !pass.dresidual)
    sum_recomputed(stream, parts, pass, partials, normal, finish);
  else
    sum_any(stream, parts, pass, partials, normal, finish);
}

template <class T>
void input_gradient_any(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
                        const Normal& normal, const Gradient& g) {
  const Passed passed{pass.mask};
  const bool adds = pass.add_dx;
  for_channels(
      stream, parts.pixels, parts.channels,
      [=] ANTICHAIN_DEVICE(float mean, float scale, float shift, float a, float b, float c, float x, float dy,
                           float y, float& dx) {
        const float centred = x - mean;
        const float fresh = a * passed(dy, y, centred, scale, shift) + (b * centred + c);
        // A term of a sum is rounded for storage before it is added wherever it comes from another kernel, so
        // it has to be rounded here, too.
        dx = adds ? dx + float(T(fresh)) : fresh;
      },
      channel(normal.mean), channel(normal.scale), channel(normal.shift), channel(g.a), channel(g.b),
      channel(g.c), read(pass.x), read(pass.dy), read(pass.y), into(pass.dx, adds));
}

// Does the same with code of its own for each of the cases that most networks have.
template <class T>
void input_gradient_unmasked(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
                             const Normal& normal, const Gradient& g) {
  for_channels(
      stream, parts.pixels, parts.channels,
      [=] ANTICHAIN_DEVICE(float mean, float a, float b, float c, float x, float dy, float& dx) {
        dx = a * dy + (b * (x - mean) + c);
      },
      channel(normal.mean), channel(g.a), channel(g.b), channel(g.c), read(pass.x), read(pass.dy),
      write<Rounding::in_pairs>(pass.dx));
}

template <class T>
void input_gradient_recomputed(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass,
                               const Normal& normal, const Gradient& g) {
  for_channels(
      stream, parts.pixels, parts.channels,
      [=] ANTICHAIN_DEVICE(float mean, float scale, float shift, float a, float b, float c, float x, float dy,
                           float& dx) {
        const float centred = x - mean;
        dx = a * (centred * scale + shift > 0 ? dy : 0.0f) + (b * centred + c);
      },
      channel(normal.mean), channel(normal.scale), channel(normal.shift), channel(g.a), channel(g.b),
      channel(g.c), read(pass.x), read(pass.dy), write<Rounding::in_pairs>(pass.dx));
}

template <class T>
void input_gradient(Stream stream, const PixelParts& parts, const BackwardPass<T>& pass, const Normal& normal,
                    const Gradient& g) {
  if (!pass.add_dx && pass.mask == Mask::none)
    input_gradient_unmasked(stream, parts, pass, normal, g);
  else if (!pass.add_dx && pass.mask == Mask::recompute)
    input_gradient_recomputed(stream, parts, pass, normal, g);
  else
    input_gradient_any(stream, parts, pass, normal, g);
}

PixelParts parts_of(const Shape& x) {
  index_of(x.elements());
  return {x.elements() / x[1], x[1]};
}

int64_t workspace_bytes(const PixelParts& parts) {
  return Partials<Moments>::bytes(parts) + 6 * Scratch::rounded(parts.channels * int64_t(sizeof(float)));
}

// The stash has mean and variance in double, and the three arrays of `Normal`.
template <class T>
class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const BatchNormOptions& options, const Shape& x) : options_(options), parts_(parts_of(x)) {}

  void forward(Context& context, const Forward& f) const override {
    const Stream stream = stream_of(context);
    const Params params = params_of(f.params);
    const bool train = f.mode == Mode::train;
    Scratch scratch(context, workspace_bytes(parts_));
    const Normal normal = normal_at(
        train ? f.stash[1].data<float>() : scratch.take<float>(3 * parts_.channels), parts_.channels);
    double* const exact = train ? f.stash[0].data<double>() : nullptr;
    if (train && !options_.fixed_statistics) {
      const Kept kept{f.statistics[0].data<float>(), f.statistics[1].data<float>(), exact,
                      exact + parts_.channels};
      take_moments(stream, parts_, f.x[0].data<T>(), {scratch, parts_}, params, kept, normal);
    } else {
      set_normal(stream, parts_.channels, f.buffers[0].data<float>(), f.buffers[1].data<float>(), params,
                 normal, exact);
    }
    const ForwardPass<T> pass{f.x[0].data<T>(), options_.add ? f.x[1].data<T>() : nullptr, f.y.data<T>(),
                              options_.relu};
    normalise(stream, parts_, pass, normal);
  }

  void backward(Context& context, const Backward& b) const override {
    const Stream stream = stream_of(context);
    Scratch scratch(context, workspace_bytes(parts_));
    const Normal normal = normal_at(b.stash[1].data<float>(), parts_.channels);
    const auto take_floats = [&] { return scratch.take<float>(parts_.channels); };
    const Gradient gradient{take_floats(), take_floats(), take_floats()};
    const double *mean = b.stash[0].data<double>(), *variance = mean + parts_.channels;
    BackwardPass<T> pass = pass_of(b);
    if (pass.dy_term && !leaves_dresidual(pass)) {
      move_elements(stream, b.dy.elements(), pass.dy_term, b.dy.data<T>(), Into::accumulate);
      pass.dy_term = nullptr;
    }
    const auto dw = [&](size_t i) { return i < b.dw.size() && b.dw[i] ? b.dw[i].data<float>() : nullptr; };
    const double n = options_.fixed_statistics ? HUGE_VAL : double(parts_.pixels);
    take_sums(stream, parts_, pass, {scratch, parts_}, params_of(b.params), mean, variance, n, normal,
              gradient, {dw(0), dw(1), b.into == Into::accumulate});
    if (!pass.dx) return;
    if (pass.dresidual && !pass.add_dresidual) {  // it is the masked dy
      pass.dy = pass.dresidual;
      pass.mask = Mask::none;
    }
    input_gradient(stream, parts_, pass, normal, gradient);
  }

  // The statistics of all nodes are absorbed by one launch (framework/cuda/absorb.h).
  std::optional<RunningAverages> running_averages() const override {
    const double n = double(parts_.pixels);
    return RunningAverages{options_.momentum, float(n / (n - 1))};
  }

  bool inseparable() const override { return true; }

 private:
  Params params_of(std::span<const Tensor> params) const {
    const auto at = [&](size_t i) { return params.empty() ? nullptr : params[i].data<float>(); };
    return {at(0), at(1), double(options_.eps)};
  }

  BackwardPass<T> pass_of(const Backward& b) const {
    BackwardPass<T> pass{};
    pass.x = b.x[0].data<T>();
    pass.dy = b.dy.data<T>();
    pass.dy_term = b.dy_term ? b.dy_term.data<T>() : nullptr;
    if (!b.dx.empty()) {
      pass.dx = b.dx[0].data<T>();
      pass.add_dx = b.into_dx(0) == Into::accumulate;
    }
    if (options_.add && !b.dx.empty()) {
      pass.dresidual = b.dx[1].data<T>();
      pass.add_dresidual = b.into_dx(1) == Into::accumulate;
    }
    pass.mask = !options_.relu ? Mask::none : options_.add ? Mask::read : Mask::recompute;
    pass.y = pass.mask == Mask::read ? b.y.data<T>() : nullptr;
    return pass;
  }

  const BatchNormOptions options_;
  const PixelParts parts_;
};

}  // namespace

KernelEntry batch_norm_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const BatchNormOptions& options = dynamic_cast<const BatchNorm&>(op).options;
                return Lowering{.x = std::vector<Layout>(x.size(), Layout::nhwc),
                                .y = Layout::nhwc,
                                .params = std::vector<Layout>(options.affine ? 2 : 0, Layout::plain),
                                .precision = precision,
                                .stash = {{.shape = {2, x[0][1]}, .dtype = DType::f64},
                                          {.shape = {3, x[0][1]}, .dtype = DType::f32}},
                                .keeps_x = true,
                                .keeps_y = options.add && options.relu,
                                .kept_inputs = 1,
                                .adds_dx = true,
                                .adds_dy = true,
                                .workspace_bytes = workspace_bytes(parts_of(x[0]))};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<BatchNormKernel>(x[0].dtype, dynamic_cast<const BatchNorm&>(op).options,
                                                   x[0].shape);
              },
          .fuses = [](const Op& op) { return !dynamic_cast<const BatchNorm&>(op).options.activation; }};
}

}  // namespace antichain::cuda
