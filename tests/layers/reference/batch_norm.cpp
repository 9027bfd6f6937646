// Computes batch normalisation channel by channel, with the operators that may be fused behind it. Forward
// stashes mean and variance and backward reads them.
#include "layers/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(BatchNormOptions options, const Shape& x)
      : options_(options), channels_(x[1]), pixels_(x[2] * x[3]), count_(x[0] * pixels_) {}

  void forward(Context&, const Forward& f) const override {
    const bool train = f.mode == Mode::train;
    for (int64_t c = 0; c < channels_; ++c) {
      const double* x = f.x[0].data<double>();
      double mean = 0, variance = 0;
      if (train && !options_.fixed_statistics) {
        each(c, [&](int64_t i) { mean += x[i] / double(count_); });
        each(c, [&](int64_t i) { variance += (x[i] - mean) * (x[i] - mean) / double(count_); });
        f.statistics[0].data<double>()[c] = mean;
        f.statistics[1].data<double>()[c] = variance;
      } else {
        mean = f.buffers[0].data<double>()[c];
        variance = f.buffers[1].data<double>()[c];
      }
      if (train) {
        f.stash[0].data<double>()[c] = mean;
        f.stash[0].data<double>()[channels_ + c] = variance;
      }
      const double scale = param(f.params, 0, c, 1) / std::sqrt(variance + options_.eps);
      const double shift = param(f.params, 1, c, 0);
      each(c, [&](int64_t i) {
        double y = (x[i] - mean) * scale + shift;
        if (options_.add) y += f.x[1].data<double>()[i];
        if (options_.activation) y = value(*options_.activation, y);
        f.y.data<double>()[i] = options_.relu ? std::max(y, 0.0) : y;
      });
    }
  }

  // Ioffe & Szegedy 2015, the chain rule of section 3, gathered.
  void backward(Context&, const Backward& b) const override {
    double *dx = wanted(b.dx, 0, Into::overwrite), *dresidual = wanted(b.dx, 1, Into::overwrite);
    double* dweight = wanted(b.dw, 0, b.into);
    double* dbias = wanted(b.dw, 1, b.into);
    for (int64_t c = 0; c < channels_; ++c) {
      const double *x = b.x[0].data<double>(), *y = b.y.data<double>();
      const double mean = b.stash[0].data<double>()[c];
      const double inverse = 1 / std::sqrt(b.stash[0].data<double>()[channels_ + c] + options_.eps);
      const double weight = param(b.params, 0, c, 1), bias = param(b.params, 1, c, 0);
      const auto dy = [&](int64_t i) {
        const double passed = options_.relu && y[i] <= 0 ? 0 : b.dy.data<double>()[i];
        if (!options_.activation) return passed;
        return passed * derivative(*options_.activation, (x[i] - mean) * inverse * weight + bias);
      };
      double sum = 0, product = 0;
      each(c, [&](int64_t i) {
        sum += dy(i);
        product += dy(i) * (x[i] - mean) * inverse;
        if (dresidual) dresidual[i] = dy(i);
      });
      if (dweight) dweight[c] += product;
      if (dbias) dbias[c] += sum;
      const double scale = weight * inverse, n = double(count_);
      const auto of_statistics = [&](int64_t i) { return sum / n + (x[i] - mean) * inverse * product / n; };
      if (dx)
        each(c, [&](int64_t i) {
          dx[i] = scale * (dy(i) - (options_.fixed_statistics ? 0 : of_statistics(i)));
        });
    }
  }

  void absorb(Context&, std::span<const std::vector<Tensor>> statistics,
              std::span<const Tensor> buffers) const override {
    const double momentum = options_.momentum, unbiased = double(count_) / double(count_ - 1);
    for (const std::vector<Tensor>& of_microbatch : statistics)
      for (int64_t c = 0; c < channels_; ++c) {
        double& mean = buffers[0].data<double>()[c];
        double& variance = buffers[1].data<double>()[c];
        mean = (1 - momentum) * mean + momentum * of_microbatch[0].data<double>()[c];
        variance = (1 - momentum) * variance + momentum * of_microbatch[1].data<double>()[c] * unbiased;
      }
    *buffers[2].data<int32_t>() += int32_t(statistics.size());
  }

 private:
  template <class F>
  void each(int64_t c, F&& f) const {
    for (int64_t n = 0; n < count_ / pixels_; ++n)
      for (int64_t p = 0; p < pixels_; ++p) f((n * channels_ + c) * pixels_ + p);
  }

  static double param(std::span<const Tensor> params, size_t i, int64_t channel, double otherwise) {
    return params.empty() ? otherwise : params[i].data<double>()[channel];
  }

  const BatchNormOptions options_;
  const int64_t channels_, pixels_, count_;
};

}  // namespace

KernelEntry batch_norm() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision) {
            Lowering l = plain_lowering(op, x);
            l.stash = {in_double({.shape = {2, x[0][1]}})};
            return l;
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<BatchNormKernel>(static_cast<const BatchNorm&>(op).options, x[0].shape);
      }};
}

}  // namespace antichain::reference
