// Softmax cross-entropy computes in double precision: it is a few thousand numbers, and every gradient begins
// here. The logarithm of the sum of exponentials is taken relative to the largest logit, so that nothing
// overflows. With classes_last it may be millions of numbers, which have loops of their own
// (layers/cpu/cross_entropy_loops.h).
#include "layers/softmax_cross_entropy.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "framework/context.h"
#include "framework/error.h"
#include "layers/cpu/activation.h"
#include "layers/cpu/cross_entropy_loops.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

using Row = Eigen::ArrayXd;

// The logits of the classes at one position lie so far apart.
using Logits = Eigen::Map<const Eigen::ArrayXf, 0, Eigen::InnerStride<>>;
using Gradient = Eigen::Map<Eigen::ArrayXf, 0, Eigen::InnerStride<>>;

// Labels that are classes, one for each position.
class Classes {
 public:
  Classes(const Tensor& x, int64_t, const SoftmaxCrossEntropy& op) : labels_(x.data<int32_t>()), op_(op) {}

  // Throws Error where a label is none.
  void check(int64_t samples, int64_t positions, int64_t classes) const {
    for (int64_t i = 0; i < samples * positions; ++i)
      if (!pads(i) && (labels_[i] < 0 || labels_[i] >= classes))
        throw Error(fmt::format("sample {} has label {}, but the model knows classes 0 to {}", i / positions,
                                labels_[i], classes - 1),
                    "check the data set and the number of classes");
  }
  bool pads(int64_t i) const { return op_.ignores(labels_[i]); }
  Eigen::Index top(int64_t i) const { return labels_[i]; }
  double sum(int64_t i) const { return weight(i); }                                      // Σ weight · share
  double times(int64_t i, const Row& row) const { return weight(i) * row[labels_[i]]; }  // Σ … · row
  void subtract(int64_t i, double factor, Row& row) const { row[labels_[i]] -= factor * weight(i); }

 private:
  double weight(int64_t i) const {
    const std::vector<float>& weights = op_.options.class_weights;
    return weights.empty() ? 1 : double(weights[size_t(labels_[i])]);
  }
  const int32_t* labels_;
  const SoftmaxCrossEntropy& op_;
};

// Labels that are shares of all classes; no class has a weight.
class Shares {
 public:
  Shares(const Tensor& x, int64_t k, const SoftmaxCrossEntropy&)
      : shares_(x.data<float>(), k, x.shape()[0]) {}

  void check(int64_t, int64_t, int64_t) const {}
  bool pads(int64_t i) const { return (shares_.col(i) == 0).all(); }
  double sum(int64_t i) const { return of(i).sum(); }
  Eigen::Index top(int64_t i) const {
    Eigen::Index largest;  // the first of equals
    shares_.col(i).maxCoeff(&largest);
    return largest;
  }
  double times(int64_t i, const Row& row) const { return (of(i) * row).sum(); }
  void subtract(int64_t i, double factor, Row& row) const { row -= factor * of(i); }

 private:
  Row of(int64_t i) const { return shares_.col(i).cast<double>(); }
  Eigen::Map<const Eigen::ArrayXXf> shares_;  // K x N
};

template <class Labels>
class SoftmaxCrossEntropyKernel : public Kernel {
 public:
  SoftmaxCrossEntropyKernel(const SoftmaxCrossEntropy& op, const Shape& logits)
      : op_(op.options),
        samples_(op.sizes(logits).samples),
        classes_(op.sizes(logits).classes),
        positions_(op.sizes(logits).positions),
        smoothing_(op.options.label_smoothing) {
    weights_ = Row::Ones(classes_);
    for (size_t k = 0; k < op.options.class_weights.size(); ++k)
      weights_[Eigen::Index(k)] = double(op.options.class_weights[k]);
  }

  void forward(Context& context, const Forward& f) const override {
    const Labels labels(f.x[1], classes_, op_);
    labels.check(samples_, positions_, classes_);
    const bool weighted = !op_.options.class_weights.empty();
    for_each_plane(samples_, context.threads(), [&](int64_t n) {
      Row log_softmax(classes_);
      double loss = 0;
      int64_t right = 0;
      for (int64_t i = n * positions_; i < (n + 1) * positions_; ++i) {
        if (labels.pads(i)) continue;
        put_log_softmax(f.x[0], i, log_softmax);
        Eigen::Index largest;  // the first of equals
        log_softmax.maxCoeff(&largest);
        const double mean = weighted ? (weights_ * log_softmax).mean() : log_softmax.mean();
        loss += -(1 - smoothing_) * labels.times(i, log_softmax) - smoothing_ * mean;
        right += largest == labels.top(i);
      }
      float* y = f.y.data<float>() + 2 * n;
      y[0] = float(loss);
      y[1] = float(double(right) / double(positions_));
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const Labels labels(b.x[1], classes_, op_);
    for_each_plane(samples_, context.threads(), [&](int64_t n) {
      Row gradient(classes_);
      for (int64_t i = n * positions_; i < (n + 1) * positions_; ++i) {
        Gradient dx(b.dx[0].data<float>() + place(i), classes_, Eigen::InnerStride<>(positions_));
        if (labels.pads(i)) {
          dx.setZero();
          continue;
        }
        put_log_softmax(b.x[0], i, gradient);
        // The sum of the target.
        const double sum = weights_.mean() + (1 - smoothing_) * (labels.sum(i) - weights_.mean());
        gradient = sum * gradient.exp() - smoothing_ / double(classes_) * weights_;
        labels.subtract(i, 1 - smoothing_, gradient);
        dx = (double(b.loss_scale) * gradient).template cast<float>();
      }
    });
  }

 private:
  int64_t place(int64_t i) const { return i / positions_ * classes_ * positions_ + i % positions_; }

  void put_log_softmax(const Tensor& logits, int64_t i, Row& row) const {
    row = Logits(logits.data<float>() + place(i), classes_, Eigen::InnerStride<>(positions_))
              .template cast<double>();
    row -= row.maxCoeff();
    row -= std::log(row.exp().sum());
  }

  const SoftmaxCrossEntropy op_;
  const int64_t samples_, classes_, positions_;  // positions_: of a sample
  const double smoothing_;
  Row weights_;
};

// What forward leaves of a position for the loss of its sample.
struct PositionLoss {
  double loss, right;
};

// The logits of each position lie one behind the other. The stash has the largest logit and the sum of
// exponentials of each position.
template <class T>
class ClassesLastKernel : public Kernel {
 public:
  ClassesLastKernel(const SoftmaxCrossEntropy& op, const Shape& logits)
      : op_(op.options),
        sizes_(op.sizes(logits)),
        smoothing_(double(op.options.label_smoothing)),
        loops_(best_loops<CrossEntropyLoops<T>>()) {
    const std::vector<float>& weights = op_.options.class_weights;
    for (const float weight : weights) mean_weight_ += double(weight) / double(weights.size());
    if (weights.empty()) mean_weight_ = 1;
  }

  static int64_t rows(const LossSizes& sizes) { return sizes.samples * sizes.positions; }
  static int64_t workspace_bytes(const LossSizes& sizes) {
    return rows(sizes) * int64_t(sizeof(PositionLoss));
  }

  void forward(Context& context, const Forward& f) const override {
    const Classes labels(f.x[1], sizes_.classes, op_);
    labels.check(sizes_.samples, sizes_.positions, sizes_.classes);
    auto* outcomes = reinterpret_cast<PositionLoss*>(context.workspace(workspace_bytes(sizes_)));
    double* kept = f.stash.empty() ? nullptr : f.stash[0].data<double>();
    for_each_plane(rows(sizes_), context.threads(), [&](int64_t i) {
      RowSums sums{};
      outcomes[i] = {};
      if (!labels.pads(i)) {
        const T* row = f.x[0].data<T>() + i * sizes_.classes;
        loops_.sums(row, sizes_.classes, weights(), smoothing_ > 0, &sums);
        const double offset = double(sums.largest) + std::log(sums.sum);
        const double own = double(float(row[labels.top(i)])) - offset;
        const double mean = sums.total / double(sizes_.classes) - mean_weight_ * offset;
        outcomes[i].loss = -(1 - smoothing_) * labels.sum(i) * own - (smoothing_ > 0 ? smoothing_ * mean : 0);
        outcomes[i].right = sums.at == labels.top(i);
      }
      if (kept) kept[2 * i] = double(sums.largest), kept[2 * i + 1] = sums.sum;
    });
    for (int64_t n = 0; n < sizes_.samples; ++n) {
      PositionLoss all{};
      for (int64_t i = n * sizes_.positions; i < (n + 1) * sizes_.positions; ++i) {
        all.loss += outcomes[i].loss;
        all.right += outcomes[i].right;
      }
      f.y.data<float>()[2 * n] = float(all.loss);
      f.y.data<float>()[2 * n + 1] = float(all.right / double(sizes_.positions));
    }
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const Classes labels(b.x[1], sizes_.classes, op_);
    const double* kept = b.stash[0].data<double>();
    const double scale = double(b.loss_scale), share = smoothing_ / double(sizes_.classes);
    for_each_plane(rows(sizes_), context.threads(), [&](int64_t i) {
      const T* row = b.x[0].data<T>() + i * sizes_.classes;
      T* dx = b.dx[0].data<T>() + i * sizes_.classes;
      if (labels.pads(i)) {
        std::fill_n(dx, sizes_.classes, T(0.0f));
        return;
      }
      // The sum of the target, and what its class has more than the others.
      const double own = (1 - smoothing_) * labels.sum(i), sum = own + smoothing_ * mean_weight_;
      const double factor = scale * sum / kept[2 * i + 1];
      loops_.gradient(row, dx, sizes_.classes, weights(),
                      {float(kept[2 * i]), float(factor), float(scale * share)});
      const Eigen::Index label = labels.top(i);
      const double exponential = std::exp(double(float(row[label])) - kept[2 * i]);
      const double weight = weights() ? double(weights()[label]) : 1;
      dx[label] = T(float(factor * exponential - scale * (share * weight + own)));
    });
  }

 private:
  const float* weights() const {
    return op_.options.class_weights.empty() ? nullptr : op_.options.class_weights.data();
  }

  const SoftmaxCrossEntropy op_;
  const LossSizes sizes_;
  const double smoothing_;
  double mean_weight_ = 0;
  const CrossEntropyLoops<T>& loops_;
};

}  // namespace

KernelEntry softmax_cross_entropy_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            const auto& loss = static_cast<const SoftmaxCrossEntropy&>(op);
            Lowering l{.x = {Layout::plain, Layout::plain}, .keeps_x = true};  // float32 in all
            if (!loss.options.classes_last) return l;
            const LossSizes sizes = loss.sizes(x[0]);
            l.precision = precision;
            l.stash = {{.shape = {ClassesLastKernel<float>::rows(sizes), 2}, .dtype = DType::f64}};
            l.workspace_bytes = ClassesLastKernel<float>::workspace_bytes(sizes);
            return l;
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        const auto& loss = static_cast<const SoftmaxCrossEntropy&>(op);
        if (loss.options.classes_last) {
          refuse_shares(x[1]);
          return make_typed<ClassesLastKernel>(x[0].dtype, loss, x[0].shape);
        }
        if (x[1].dtype == DType::i32)
          return std::make_unique<SoftmaxCrossEntropyKernel<Classes>>(loss, x[0].shape);
        return std::make_unique<SoftmaxCrossEntropyKernel<Shares>>(loss, x[0].shape);
      }};
}

}  // namespace antichain::cpu
