// Batch normalisation in three launches each way: sums of runs of pixels, a fold that ends in the channel's constants, and
// one pass over the elements, with what is fused behind it.
//
// As on the CPU, what is one number per channel is computed in double: mean and variance are stashed that way for backward,
// and what rounding the mean to float takes off is put back into the shift. Variances are sums of squared distances from
// the run's first pixel, merged by Chan's formula, so that nothing cancels however far the mean is from 0.
//
// Input gradient, d(weight) and d(bias) come out of one computation, so the halves of backward are inseparable.
#include "layers/batch_norm.h"

#include <cmath>

#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// Chan, Golub & LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", Stanford
// STAN-CS-79-773, 1979, formulas 2.1.
struct Moments {
  double n, mean, squares;
  ANTICHAIN_ANYWHERE void merge(const Moments& other) {
    const double delta = other.mean - mean, all = n + other.n;
    mean += delta * (other.n / all);
    squares += other.squares + delta * delta * (n * other.n / all);
    n = all;
  }
};

struct Pair {
  double sum, product;
  ANTICHAIN_ANYWHERE void merge(const Pair& other) {
    sum += other.sum;
    product += other.product;
  }
};

// Per channel: y = (x − mean) · scale + shift. Three arrays of floats.
struct Normal {
  float *mean, *scale, *shift;

  ANTICHAIN_ANYWHERE void set(Index c, double m, double variance, double eps, float weight,
                              float bias) const {
    const double s = double(weight) / sqrt(variance + eps);
    mean[c] = float(m);
    scale[c] = float(s);
    shift[c] = float(double(bias) + (double(float(m)) - m) * s);
  }
  ANTICHAIN_ANYWHERE float centred(Index c, float x) const { return x - mean[c]; }
  ANTICHAIN_ANYWHERE float of(Index c, float centred) const { return centred * scale[c] + shift[c]; }
};

struct Params {
  const float *weight, *bias;
  double eps;
};

// Where a micro-batch's mean and variance are kept: float for the running statistics, double for backward.
struct Kept {
  float *mean, *variance;
  double *exact_mean, *exact_variance;
};

template <class T>
void take_moments(Stream stream, const Runs& runs, const T* x, double* partials, const Params& params,
                  const Kept& kept, const Normal& normal) {
  for_each(stream, runs.partials(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index channel = i % runs.channels, run = i / runs.channels, end = runs.last(run);
    const float pivot = float(x[runs.first(run) * runs.channels + channel]);
    double off = 0, squares = 0;
    for (Index p = runs.first(run); p < end; p += chain) {
      float d = 0, d2 = 0;
      for (Index q = p; q < end && q < p + chain; ++q) {
        const float distance = float(x[q * runs.channels + channel]) - pivot;
        d += distance;
        d2 += distance * distance;
      }
      off += double(d);
      squares += double(d2);
    }
    const double n = double(end - runs.first(run));
    partials[2 * i] = double(pivot) + off / n;
    partials[2 * i + 1] = squares - off * off / n;
  });
  fold<Moments>(
      stream, runs.count, runs.channels,
      [=] ANTICHAIN_DEVICE(Index run, Index channel) {
        const double* of_run = partials + 2 * (run * runs.channels + channel);
        return Moments{double(runs.last(run) - runs.first(run)), of_run[0], of_run[1]};
      },
      [=] ANTICHAIN_DEVICE(Index c, const Moments& all) {
        const double variance = all.squares / all.n;
        kept.mean[c] = float(all.mean);
        kept.variance[c] = float(variance);
        kept.exact_mean[c] = all.mean;
        kept.exact_variance[c] = variance;
        normal.set(c, all.mean, variance, params.eps, params.weight[c], params.bias[c]);
      });
}

template <class Number>
void set_normal(Stream stream, Index channels, const Number* mean, const Number* variance,
                const Params& params, const Normal& normal) {
  for_each(stream, channels, [=] ANTICHAIN_DEVICE(Index c) {
    normal.set(c, double(mean[c]), double(variance[c]), params.eps, params.weight[c], params.bias[c]);
  });
}

template <class T>
struct ForwardPass {
  const T *x, *residual;  // residual: added to y, or nullptr
  T* y;
  bool relu;
};

template <class T>
void normalise(Stream stream, const Runs& runs, const ForwardPass<T>& pass, const Normal& normal) {
  for_each(stream, int64_t(runs.pixels) * runs.channels, [=] ANTICHAIN_DEVICE(Index i) {
    const Index c = i % runs.channels;
    float y = normal.of(c, normal.centred(c, float(pass.x[i])));
    if (pass.residual) y += float(pass.residual[i]);
    if (pass.relu) y = y < 0 ? 0.0f : y;  // lets NaN through, to be seen
    pass.y[i] = T(y);
  });
}

// ReLU's: which elements' gradients pass. y > 0, where y is computed again if that is cheaper than reading it.
enum class Mask { none, recompute, read };

template <class T>
struct BackwardPass {
  const T *x, *dy, *y;         // y: with Mask::read
  T *dx, *dresidual;           // nullptr: not wanted
  bool add_dx, add_dresidual;  // to what is there
  Mask mask;

  ANTICHAIN_ANYWHERE float passed(const Normal& normal, Index c, float centred, Index i) const {
    const bool stopped = (mask == Mask::recompute && !(normal.of(c, centred) > 0)) ||
                         (mask == Mask::read && !(float(y[i]) > 0));
    return stopped ? 0.0f : float(dy[i]);
  }
};

// Of the gradient dx = a · dy + (b · (x − mean) + c), per channel.
struct Gradient {
  float *a, *b, *c;
};

// Where d(weight) and d(bias) go; nullptr: not wanted.
struct Into2 {
  float *weight, *bias;
  bool adds;
};

// Ioffe & Szegedy 2015, the chain rule of section 3, gathered: with x̂ = (x − mean) / sqrt(variance + eps),
//   dx = weight / sqrt(variance + eps) · (dy − Σ dy / n − x̂ · Σ (dy · x̂) / n)
template <class T>
void take_sums(Stream stream, const Runs& runs, const BackwardPass<T>& pass, double* partials,
               const Params& params, const double* mean, const double* variance, const Normal& normal,
               const Gradient& gradient, const Into2& into) {
  for_each(stream, runs.partials(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index channel = i % runs.channels, run = i / runs.channels, end = runs.last(run);
    double sum = 0, product = 0;
    for (Index p = runs.first(run); p < end; p += chain) {
      float part = 0, part_product = 0;
      for (Index q = p; q < end && q < p + chain; ++q) {
        const Index at = q * runs.channels + channel;
        const float centred = normal.centred(channel, float(pass.x[at]));
        const float dy = pass.passed(normal, channel, centred, at);
        if (pass.dresidual) pass.dresidual[at] = T(pass.add_dresidual ? float(pass.dresidual[at]) + dy : dy);
        part += dy;
        part_product += dy * centred;
      }
      sum += double(part);
      product += double(part_product);
    }
    partials[2 * i] = sum;
    partials[2 * i + 1] = product;
  });
  fold<Pair>(
      stream, runs.count, runs.channels,
      [=] ANTICHAIN_DEVICE(Index run, Index channel) {
        const double* of_run = partials + 2 * (run * runs.channels + channel);
        return Pair{of_run[0], of_run[1]};
      },
      [=] ANTICHAIN_DEVICE(Index c, const Pair& all) {
        const double inverse = 1 / sqrt(variance[c] + params.eps), off = double(float(mean[c])) - mean[c];
        const double normed = (all.product + off * all.sum) * inverse;  // Σ dy · x̂
        const double a = double(params.weight[c]) * inverse, n = double(runs.pixels);
        const double slope = -a * inverse * normed / n;
        gradient.a[c] = float(a);
        gradient.b[c] = float(slope);
        gradient.c[c] = float(slope * off - a * all.sum / n);
        if (into.weight) into.weight[c] = into.adds ? into.weight[c] + float(normed) : float(normed);
        if (into.bias) into.bias[c] = into.adds ? into.bias[c] + float(all.sum) : float(all.sum);
      });
}

template <class T>
void input_gradient(Stream stream, const Runs& runs, const BackwardPass<T>& pass, const Normal& normal,
                    const Gradient& g) {
  for_each(stream, int64_t(runs.pixels) * runs.channels, [=] ANTICHAIN_DEVICE(Index i) {
    const Index c = i % runs.channels;
    const float centred = normal.centred(c, float(pass.x[i]));
    const float dx = g.a[c] * pass.passed(normal, c, centred, i) + (g.b[c] * centred + g.c[c]);
    // A term of a sum is stored before it is added where it comes from elsewhere, so it has to be here.
    pass.dx[i] = pass.add_dx ? T(float(pass.dx[i]) + float(T(dx))) : T(dx);
  });
}

// The running variance is the unbiased one, as PyTorch has it.
void absorb_statistics(Stream stream, Index channels, float momentum, float unbias, const float* mean,
                       const float* variance, float* running_mean, float* running_var, int32_t* batches) {
  for_each(stream, channels, [=] ANTICHAIN_DEVICE(Index c) {
    running_mean[c] = (1 - momentum) * running_mean[c] + momentum * mean[c];
    running_var[c] = (1 - momentum) * running_var[c] + momentum * (variance[c] * unbias);
    if (c == 0) ++*batches;
  });
}

Runs runs_of(const Shape& x) {
  index_of(x.elements());
  return {x.elements() / x[1], x[1]};
}

int64_t workspace_bytes(const Runs& runs) {
  return Scratch::rounded(2 * runs.partials() * int64_t(sizeof(double))) +
         6 * Scratch::rounded(runs.channels * int64_t(sizeof(float)));
}

template <class T>
class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const BatchNormOptions& options, const Shape& x) : options_(options), runs_(runs_of(x)) {}

  void forward(Context& context, const Forward& f) const override {
    const Stream stream = stream_of(context);
    Scratch scratch(context, bytes());
    const Normal normal = take_normal(scratch);
    const Params params = params_of(f.params);
    if (f.mode == Mode::train) {
      double* exact = f.stash[0].data<double>();
      const Kept kept{f.statistics[0].data<float>(), f.statistics[1].data<float>(), exact,
                      exact + runs_.channels};
      take_moments(stream, runs_, f.x[0].data<T>(), scratch.take<double>(2 * runs_.partials()), params, kept,
                   normal);
    } else {
      set_normal(stream, runs_.channels, f.buffers[0].data<float>(), f.buffers[1].data<float>(), params,
                 normal);
    }
    const ForwardPass<T> pass{f.x[0].data<T>(), options_.add ? f.x[1].data<T>() : nullptr, f.y.data<T>(),
                              options_.relu};
    normalise(stream, runs_, pass, normal);
  }

  void backward(Context& context, const Backward& b) const override {
    const Stream stream = stream_of(context);
    Scratch scratch(context, bytes());
    const Normal normal = take_normal(scratch);
    const Gradient gradient{take_floats(scratch), take_floats(scratch), take_floats(scratch)};
    const Params params = params_of(b.params);
    const double *mean = b.stash[0].data<double>(), *variance = mean + runs_.channels;
    set_normal(stream, runs_.channels, mean, variance, params, normal);
    BackwardPass<T> pass = pass_of(b);
    const auto dw = [&](size_t i) { return i < b.dw.size() && b.dw[i] ? b.dw[i].data<float>() : nullptr; };
    take_sums(stream, runs_, pass, scratch.take<double>(2 * runs_.partials()), params, mean, variance, normal,
              gradient, {dw(0), dw(1), b.into == Into::accumulate});
    if (!pass.dx) return;
    if (pass.dresidual && !pass.add_dresidual) {  // it is the masked dy
      pass.dy = pass.dresidual;
      pass.mask = Mask::none;
    }
    input_gradient(stream, runs_, pass, normal, gradient);
  }

  void absorb(Context& context, std::span<const Tensor> statistics,
              std::span<const Tensor> buffers) const override {
    const double n = double(runs_.pixels);
    absorb_statistics(stream_of(context), runs_.channels, options_.momentum, float(n / (n - 1)),
                      statistics[0].data<float>(), statistics[1].data<float>(), buffers[0].data<float>(),
                      buffers[1].data<float>(), buffers[2].data<int32_t>());
  }

  bool inseparable() const override { return true; }

 private:
  int64_t bytes() const { return workspace_bytes(runs_); }
  float* take_floats(Scratch& scratch) const { return scratch.take<float>(runs_.channels); }
  Normal take_normal(Scratch& scratch) const {
    return {take_floats(scratch), take_floats(scratch), take_floats(scratch)};
  }
  Params params_of(std::span<const Tensor> params) const {
    return {params[0].data<float>(), params[1].data<float>(), double(options_.eps)};
  }

  BackwardPass<T> pass_of(const Backward& b) const {
    BackwardPass<T> pass{};
    pass.x = b.x[0].data<T>();
    pass.dy = b.dy.data<T>();
    pass.y = b.y ? b.y.data<T>() : nullptr;
    if (!b.dx.empty()) {
      pass.dx = b.dx[0].data<T>();
      pass.add_dx = b.into_dx(0) == Into::accumulate;
    }
    if (options_.add && !b.dx.empty()) {
      pass.dresidual = b.dx[1].data<T>();
      pass.add_dresidual = b.into_dx(1) == Into::accumulate;
    }
    pass.mask = !options_.relu ? Mask::none : options_.add ? Mask::read : Mask::recompute;
    return pass;
  }

  const BatchNormOptions options_;
  const Runs runs_;
};

}  // namespace

KernelEntry batch_norm_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const BatchNormOptions& options = dynamic_cast<const BatchNorm&>(op).options;
                return Lowering{.x = std::vector<Layout>(x.size(), Layout::nhwc),
                                .y = Layout::nhwc,
                                .params = {Layout::plain, Layout::plain},
                                .precision = precision,
                                .stash = {{.shape = {2, x[0][1]}, .dtype = DType::f64}},  // mean, variance
                                .keeps_x = true,
                                .keeps_y = options.add && options.relu,
                                .kept_inputs = 1,
                                .adds_dx = true,
                                .workspace_bytes = workspace_bytes(runs_of(x[0]))};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<BatchNormKernel>(x[0].dtype, dynamic_cast<const BatchNorm&>(op).options,
                                                   x[0].shape);
              },
          .fuses = [](const Op&) { return true; }};
}

}  // namespace antichain::cuda
