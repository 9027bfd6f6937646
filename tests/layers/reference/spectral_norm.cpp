// Computes spectral normalisation with Eigen's matrices.
#include "layers/spectral_norm.h"

#include <Eigen/Core>
#include <algorithm>

#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Weight = Eigen::Map<Rows>;
using Vector = Eigen::Map<Eigen::VectorXd>;

Weight weight(const Tensor& t) { return {t.data<double>(), t.shape()[1], t.elements() / t.shape()[1]}; }
Vector vector(const Tensor& t) { return {t.data<double>(), t.elements()}; }

void spectral_norm_forward(const Op& op, const Forward& f) {
  const SpectralNormOptions& o = static_cast<const SpectralNorm&>(op).options;
  const Weight w = weight(f.x[0]);
  Eigen::VectorXd u = vector(f.buffers[0]), v = vector(f.buffers[1]);
  for (int i = 0; f.mode == Mode::train && i < o.iterations; ++i) {
    v = w.transpose() * u;
    v /= std::max(v.norm(), double(o.eps));
    u = w * v;
    u /= std::max(u.norm(), double(o.eps));
    vector(f.statistics[0]) = u;
    vector(f.statistics[1]) = v;
  }
  weight(f.y) = w / u.dot(w * v);
}

void spectral_norm_backward(const Op&, const Backward& b) {
  if (!wanted(b.dx, 0, Into::overwrite)) return;
  const Weight w = weight(b.x[0]), dy = weight(b.dy);
  const Vector u = vector(b.statistics[0]), v = vector(b.statistics[1]);
  const double sigma = u.dot(w * v);
  weight(b.dx[0]) = (dy - dy.cwiseProduct(w).sum() / sigma * (u * v.transpose())) / sigma;
}

class SpectralNormKernel : public Kernel {
 public:
  explicit SpectralNormKernel(const Op& op) : op_(op) {}
  void forward(Context&, const Forward& f) const override { spectral_norm_forward(op_, f); }
  void backward(Context&, const Backward& b) const override { spectral_norm_backward(op_, b); }
  void absorb(Context&, std::span<const std::vector<Tensor>> statistics,
              std::span<const Tensor> buffers) const override {
    for (size_t i = 0; i < 2; ++i) vector(buffers[i]) = vector(statistics.back()[i]);
  }

 private:
  const Op& op_;
};

}  // namespace

KernelEntry spectral_norm() {
  return {.lower = [](const Op& op, std::span<const Shape> x, std::span<const Layout>,
                      Precision) { return plain_lowering(op, x); },
          .make = [](const Op& op, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<SpectralNormKernel>(op);
          }};
}

}  // namespace antichain::reference
