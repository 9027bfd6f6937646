// SpectralNorm folds products of the matrix and vectors, in double. An iteration is six launches.
#include "layers/spectral_norm.h"

#include <cmath>

#include "framework/cuda/launch.h"
#include "layers/cuda/move.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"

namespace antichain::cuda {
namespace {

struct Matrix {
  const float* at;
  Index rows, columns;
};

// Scratch has the product of the matrix and a vector, and a sum.
struct Product {
  double *numbers, *sum;
};

void times_rows(Stream stream, const Matrix& w, const float* u, double* to) {
  fold<Sum>(
      stream, w.rows, w.columns,
      [=] ANTICHAIN_DEVICE(Index i, Index j) { return Sum{double(w.at[i * w.columns + j]) * double(u[i])}; },
      [=] ANTICHAIN_DEVICE(Index j, const Sum& all) { to[j] = all.value; });
}

void times_columns(Stream stream, const Matrix& w, const float* v, double* to) {
  fold<Sum>(
      stream, w.columns, w.rows,
      [=] ANTICHAIN_DEVICE(Index j, Index i) { return Sum{double(w.at[i * w.columns + j]) * double(v[j])}; },
      [=] ANTICHAIN_DEVICE(Index i, const Sum& all) { to[i] = all.value; });
}

void normalise(Stream stream, Index count, const Product& product, double eps, float* to) {
  double *numbers = product.numbers, *sum = product.sum;
  fold<Sum>(
      stream, count, 1, [=] ANTICHAIN_DEVICE(Index i, Index) { return Sum{numbers[i] * numbers[i]}; },
      [=] ANTICHAIN_DEVICE(Index, const Sum& all) {
        const double norm = sqrt(all.value);
        *sum = norm > eps ? norm : eps;
      });
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) { to[i] = float(numbers[i] / *sum); });
}

void divide(Stream stream, const Matrix& w, const float* u, const Product& product, double* sigma, float* y) {
  const double* numbers = product.numbers;
  fold<Sum>(
      stream, w.rows, 1, [=] ANTICHAIN_DEVICE(Index i, Index) { return Sum{double(u[i]) * numbers[i]}; },
      [=] ANTICHAIN_DEVICE(Index, const Sum& all) { *sigma = all.value; });
  for_each(stream, int64_t(w.rows) * w.columns,
           [=] ANTICHAIN_DEVICE(Index i) { y[i] = float(double(w.at[i]) / *sigma); });
}

void weight_gradient(Stream stream, Index rows, Index columns, const float* y, const float* dy,
                     const float* u, const float* v, const double* sigma, double* sum, float* dx) {
  fold<Sum>(
      stream, rows * columns, 1,
      [=] ANTICHAIN_DEVICE(Index i, Index) { return Sum{double(dy[i]) * double(y[i])}; },
      [=] ANTICHAIN_DEVICE(Index, const Sum& all) { *sum = all.value; });
  for_each(stream, int64_t(rows) * columns, [=] ANTICHAIN_DEVICE(Index i) {
    const double along = *sum * double(u[i / columns]) * double(v[i % columns]);
    dx[i] = float((double(dy[i]) - along) / *sigma);
  });
}

class SpectralNormKernel : public Kernel {
 public:
  SpectralNormKernel(const SpectralNorm& op, const Shape& x)
      : options_(op.options), rows_(index_of(x[1])), columns_(index_of(x.elements() / x[1])) {
    index_of(x.elements());
  }

  int64_t workspace_bytes() const {
    return Scratch::rounded((rows_ > columns_ ? rows_ : columns_) * int64_t(sizeof(double))) +
           2 * Scratch::rounded(sizeof(double));
  }

  void forward(Context& context, const Forward& f) const override {
    const Stream stream = stream_of(context);
    Scratch scratch(context, workspace_bytes());
    const Product product{scratch.take<double>(rows_ > columns_ ? rows_ : columns_), scratch.take<double>(1)};
    double* sigma = f.stash.empty() ? scratch.take<double>(1) : f.stash[0].data<double>();
    const Matrix w{f.x[0].data<float>(), rows_, columns_};
    const float *u = f.buffers[0].data<float>(), *v = f.buffers[1].data<float>();
    if (f.mode == Mode::train) {
      float *next_u = f.statistics[0].data<float>(), *next_v = f.statistics[1].data<float>();
      for (int i = 0; i < options_.iterations; ++i) {
        times_rows(stream, w, i == 0 ? u : next_u, product.numbers);
        normalise(stream, columns_, product, double(options_.eps), next_v);
        times_columns(stream, w, next_v, product.numbers);
        normalise(stream, rows_, product, double(options_.eps), next_u);
      }
      u = next_u, v = next_v;
    }
    times_columns(stream, w, v, product.numbers);
    divide(stream, w, u, product, sigma, f.y.data<float>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    Scratch scratch(context, workspace_bytes());
    weight_gradient(stream_of(context), rows_, columns_, b.y.data<float>(), b.dy.data<float>(),
                    b.statistics[0].data<float>(), b.statistics[1].data<float>(), b.stash[0].data<double>(),
                    scratch.take<double>(1), b.dx[0].data<float>());
  }

  void absorb(Context& context, std::span<const std::vector<Tensor>> statistics,
              std::span<const Tensor> buffers) const override {
    for (size_t i = 0; i < 2 && !statistics.empty(); ++i)
      move_elements(stream_of(context), buffers[i].elements(), statistics.back()[i].data<float>(),
                    buffers[i].data<float>(), Into::overwrite);
  }

 private:
  const SpectralNormOptions options_;
  const Index rows_, columns_;
};

}  // namespace

KernelEntry spectral_norm_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            Lowering l = lower_spectral_norm(precision);
            l.workspace_bytes =
                SpectralNormKernel(static_cast<const SpectralNorm&>(op), x[0]).workspace_bytes();
            return l;
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<SpectralNormKernel>(static_cast<const SpectralNorm&>(op), x[0].shape);
      }};
}

}  // namespace antichain::cuda
