// Softmax cross-entropy computes in double precision: it is a few thousand numbers, and every gradient begins
// here. The logarithm of the sum of exponentials is taken relative to the largest logit, so that nothing
// overflows.
#include "layers/softmax_cross_entropy.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <cmath>

#include "framework/error.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

using Row = Eigen::ArrayXd;

// Labels that are classes.
struct Classes {
  const int32_t* labels;
  int64_t classes;

  Classes(const Tensor& x, int64_t k) : labels(x.data<int32_t>()), classes(k) {}

  // Throws Error where the label is none.
  bool pads(int64_t n) const {
    if (labels[n] < -1 || labels[n] >= classes)
      throw Error(fmt::format("sample {} has label {}, but the model knows classes 0 to {}", n, labels[n],
                              classes - 1),
                  "check the data set and the number of classes");
    return labels[n] < 0;
  }
  double sum(int64_t) const { return 1; }
  Eigen::Index top(int64_t n) const { return labels[n]; }
  double times(int64_t n, const Row& row) const { return row[labels[n]]; }  // Σ share · row
  void subtract(int64_t n, double factor, Row& row) const { row[labels[n]] -= factor; }
};

// Labels that are shares of all classes.
struct Shares {
  Eigen::Map<const Eigen::ArrayXXf> shares;  // K x N

  Shares(const Tensor& x, int64_t k) : shares(x.data<float>(), k, x.shape()[0]) {}

  bool pads(int64_t n) const { return (shares.col(n) == 0).all(); }
  double sum(int64_t n) const { return of(n).sum(); }
  Eigen::Index top(int64_t n) const {
    Eigen::Index largest;  // the first of equals
    shares.col(n).maxCoeff(&largest);
    return largest;
  }
  double times(int64_t n, const Row& row) const { return (of(n) * row).sum(); }
  void subtract(int64_t n, double factor, Row& row) const { row -= factor * of(n); }

 private:
  Row of(int64_t n) const { return shares.col(n).cast<double>(); }
};

template <class Labels>
class SoftmaxCrossEntropyKernel : public Kernel {
 public:
  SoftmaxCrossEntropyKernel(LossOptions options, const Shape& logits)
      : samples_(logits[0]), classes_(logits[1]), smoothing_(options.label_smoothing) {}

  void forward(Context&, const Forward& f) const override {
    const Labels labels(f.x[1], classes_);
    for (int64_t n = 0; n < samples_; ++n) {
      float* y = f.y.data<float>() + 2 * n;
      y[0] = y[1] = 0;
      if (labels.pads(n)) continue;
      const Row log_softmax = log_softmax_of(f.x[0], n);
      Eigen::Index largest;  // the first of equals
      log_softmax.maxCoeff(&largest);
      y[0] = float(-(1 - smoothing_) * labels.times(n, log_softmax) - smoothing_ * log_softmax.mean());
      y[1] = largest == labels.top(n) ? 1.0f : 0.0f;
    }
  }

  void backward(Context&, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const Labels labels(b.x[1], classes_);
    for (int64_t n = 0; n < samples_; ++n) {
      Eigen::Map<Eigen::ArrayXf> dx(b.dx[0].data<float>() + n * classes_, classes_);
      if (labels.pads(n)) {
        dx.setZero();
        continue;
      }
      const double sum = 1 + (1 - smoothing_) * (labels.sum(n) - 1);  // of the target
      Row gradient = sum * log_softmax_of(b.x[0], n).exp() - smoothing_ / double(classes_);
      labels.subtract(n, 1 - smoothing_, gradient);
      dx = (double(b.loss_scale) * gradient).template cast<float>();
    }
  }

 private:
  Row log_softmax_of(const Tensor& logits, int64_t n) const {
    const Row row =
        Eigen::Map<const Eigen::ArrayXf>(logits.data<float>() + n * classes_, classes_).cast<double>();
    const Row shifted = row - row.maxCoeff();
    return shifted - std::log(shifted.exp().sum());
  }

  const int64_t samples_, classes_;
  const double smoothing_;
};

}  // namespace

KernelEntry softmax_cross_entropy_entry() {
  return {
      .lower =
          [](const Op&, std::span<const Shape>, std::span<const Layout>, Precision) {  // float32 in all
            return Lowering{.x = {Layout::plain, Layout::plain}, .keeps_x = true};
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        const LossOptions& options = static_cast<const SoftmaxCrossEntropy&>(op).options;
        if (x[1].shape.rank() == 1)
          return std::make_unique<SoftmaxCrossEntropyKernel<Classes>>(options, x[0].shape);
        return std::make_unique<SoftmaxCrossEntropyKernel<Shares>>(options, x[0].shape);
      }};
}

}  // namespace antichain::cpu
