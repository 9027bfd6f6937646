// SpectralNorm multiplies the matrix with vectors by plain loops, and sums in double.
#include "layers/spectral_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

class SpectralNormKernel : public Kernel {
 public:
  SpectralNormKernel(const SpectralNorm& op, const Shape& x)
      : options_(op.options), rows_(x[1]), columns_(x.elements() / x[1]) {}

  void forward(Context&, const Forward& f) const override {
    const float *w = f.x[0].data<float>(), *u = f.buffers[0].data<float>(), *v = f.buffers[1].data<float>();
    if (f.mode == Mode::train) {
      float *next_u = f.statistics[0].data<float>(), *next_v = f.statistics[1].data<float>();
      std::copy_n(u, rows_, next_u);
      for (int i = 0; i < options_.iterations; ++i) {
        normalise(times_rows(w, next_u), next_v);
        normalise(times_columns(w, next_v), next_u);
      }
      u = next_u, v = next_v;
    }
    const std::vector<double> product = times_columns(w, v);
    double sigma = 0;
    for (int64_t i = 0; i < rows_; ++i) sigma += double(u[i]) * product[size_t(i)];
    if (!f.stash.empty()) *f.stash[0].data<double>() = sigma;
    for (int64_t i = 0; i < rows_ * columns_; ++i) f.y.data<float>()[i] = float(w[i] / sigma);
  }

  void backward(Context&, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const float *y = b.y.data<float>(), *dy = b.dy.data<float>();
    const float *u = b.statistics[0].data<float>(), *v = b.statistics[1].data<float>();
    const double sigma = *b.stash[0].data<double>();
    double sum = 0;
    for (int64_t i = 0; i < rows_ * columns_; ++i) sum += double(dy[i]) * y[i];
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < columns_; ++j) {
        const int64_t at = i * columns_ + j;
        b.dx[0].data<float>()[at] = float((dy[at] - sum * u[i] * v[j]) / sigma);
      }
  }

  // The last micro-batch's u and v are those of all.
  void absorb(Context&, std::span<const std::vector<Tensor>> statistics,
              std::span<const Tensor> buffers) const override {
    for (size_t i = 0; i < 2 && !statistics.empty(); ++i)
      std::copy_n(statistics.back()[i].data<float>(), buffers[i].elements(), buffers[i].data<float>());
  }

 private:
  std::vector<double> times_rows(const float* w, const float* u) const {
    std::vector<double> product(size_t(columns_), 0.0);
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < columns_; ++j) product[size_t(j)] += double(w[i * columns_ + j]) * u[i];
    return product;
  }
  std::vector<double> times_columns(const float* w, const float* v) const {
    std::vector<double> product(size_t(rows_), 0.0);
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < columns_; ++j) product[size_t(i)] += double(w[i * columns_ + j]) * v[j];
    return product;
  }
  void normalise(const std::vector<double>& from, float* to) const {
    double squares = 0;
    for (const double x : from) squares += x * x;
    const double norm = std::max(std::sqrt(squares), double(options_.eps));
    for (size_t i = 0; i < from.size(); ++i) to[i] = float(from[i] / norm);
  }

  const SpectralNormOptions options_;
  const int64_t rows_, columns_;
};

}  // namespace

KernelEntry spectral_norm_entry() {
  return {
      .lower = [](const Op&, std::span<const Shape>, std::span<const Layout>,
                  Precision precision) { return lower_spectral_norm(precision); },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<SpectralNormKernel>(dynamic_cast<const SpectralNorm&>(op), x[0].shape);
      }};
}

}  // namespace antichain::cpu
