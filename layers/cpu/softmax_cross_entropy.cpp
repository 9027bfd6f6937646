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

class SoftmaxCrossEntropyKernel : public Kernel {
 public:
  SoftmaxCrossEntropyKernel(LossOptions options, const Shape& logits)
      : samples_(logits[0]), classes_(logits[1]), smoothing_(options.label_smoothing) {}

  void forward(Context&, const Forward& f) const override {
    for (int64_t n = 0; n < samples_; ++n) {
      float* y = f.y.data<float>() + 2 * n;
      const int32_t label = label_of(f.x, n);
      y[0] = y[1] = 0;
      if (label < 0) continue;
      const Row log_softmax = log_softmax_of(f.x[0], n);
      Eigen::Index largest;  // the first of equals
      log_softmax.maxCoeff(&largest);
      y[0] = float(-(1 - smoothing_) * log_softmax[label] - smoothing_ * log_softmax.mean());
      y[1] = largest == label ? 1.0f : 0.0f;
    }
  }

  void backward(Context&, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    for (int64_t n = 0; n < samples_; ++n) {
      Eigen::Map<Eigen::ArrayXf> dx(b.dx[0].data<float>() + n * classes_, classes_);
      const int32_t label = label_of(b.x, n);
      if (label < 0) {
        dx.setZero();
        continue;
      }
      Row gradient = log_softmax_of(b.x[0], n).exp() - smoothing_ / double(classes_);
      gradient[label] -= 1 - smoothing_;
      dx = (double(b.loss_scale) * gradient).cast<float>();
    }
  }

 private:
  int32_t label_of(std::span<const Tensor> x, int64_t n) const {
    const int32_t label = x[1].data<int32_t>()[n];
    if (label < -1 || label >= classes_)
      throw Error(
          fmt::format("sample {} has label {}, but the model knows classes 0 to {}", n, label, classes_ - 1),
          "check the data set and the number of classes");
    return label;
  }

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
        return std::make_unique<SoftmaxCrossEntropyKernel>(
            static_cast<const SoftmaxCrossEntropy&>(op).options, x[0].shape);
      }};
}

}  // namespace antichain::cpu
