// Softmax cross-entropy computes in double, relative to the largest logit, so that nothing overflows. Forward
// leaves the largest logit and the logarithm of the sum of exponentials for backward.
//
// A label that is no class can't be reported from here without waiting for the device. So its sample's loss
// and gradient are NaN, which the step's check for finite numbers finds.
#include "layers/softmax_cross_entropy.h"

#include <cmath>
#include <limits>

#include "layers/cuda/fold_rows.h"
#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct Largest {
  double value, total;  // total: of all logits
  Index at;             // the first of equals
  ANTICHAIN_ANYWHERE void merge(const Largest& other) {
    if (other.value > value || (other.value == value && other.at < at) || other.value != other.value) {
      value = other.value;
      at = other.at;
    }
    total += other.total;
  }
};

// What the logits of a row have in common, of which parts are merged: Milakov & Gimelshein, "Online
// normalizer calculation for softmax", 2018.
struct OnlineSums {
  double largest, sum, total;  // sum: of exp(logit − largest); total: of all logits
  Index at;                    // the first of equals
  ANTICHAIN_ANYWHERE void merge(const OnlineSums& other) {
    const bool first = other.largest == largest && other.at < at;
    total += other.total;
    if (other.largest > largest || first) {
      sum = (other.largest == largest ? sum : sum * exp(largest - other.largest)) + other.sum;
      largest = other.largest;
      at = other.at;
    } else {
      sum += other.largest == largest ? other.sum : other.sum * exp(other.largest - largest);
    }
  }
};

struct Total {
  double value;
  ANTICHAIN_ANYWHERE void merge(const Total& other) { value += other.value; }
};

// A row is one position of one sample.
struct Loss {
  Index samples, classes, positions;
  double smoothing, mean_weight;  // mean_weight: of all classes
  bool ignores = false;
  int32_t ignored = 0;
  bool classes_last = false;
  const float* weights = nullptr;  // of the classes; nullptr: 1

  ANTICHAIN_ANYWHERE Index rows() const { return samples * positions; }
  ANTICHAIN_ANYWHERE Index at(Index row, Index k) const {
    return classes_last ? row * classes + k : (row / positions * classes + k) * positions + row % positions;
  }
  ANTICHAIN_ANYWHERE bool pads(int32_t label) const { return label == -1 || (ignores && label == ignored); }
  ANTICHAIN_ANYWHERE bool wrong(int32_t label) const { return label < 0 || Index(label) >= classes; }
  ANTICHAIN_ANYWHERE double weight(Index k) const { return weights ? double(weights[k]) : 1; }
};

// Holds each row's largest logit and log Σ exp(logit − largest).
struct Normaliser {
  double *largest, *log_sum;
};

// What a sample has of its positions.
struct Outcome {
  double loss, right;
  ANTICHAIN_ANYWHERE void merge(const Outcome& other) {
    loss += other.loss;
    right += other.right;
  }
};

// `offset` is the logarithm of the sum of exponentials, `mean` that of weight · log softmax.
template <class T>
ANTICHAIN_DEVICE double loss_of_row(const Loss& l, const T* logits, const int32_t* labels, Index row,
                                    double offset, double mean) {
  const int32_t label = labels[row];
  if (l.pads(label)) return 0;
  if (l.wrong(label)) return double(nanf(""));
  const double own = double(float(logits[l.at(row, Index(label))])) - offset;
  return -(1 - l.smoothing) * l.weight(Index(label)) * own - l.smoothing * mean;
}

// `outcomes` has one for each row where a sample has several; nullptr: the row is the sample.
template <class T>
void loss(Stream stream, const Loss& l, const T* logits, const int32_t* labels, const Normaliser& n,
          Outcome* outcomes, float* y) {
  fold<Largest>(
      stream, l.classes, l.rows(),
      [=] ANTICHAIN_DEVICE(Index k, Index row) {
        const double x = double(float(logits[l.at(row, k)]));
        return Largest{x, l.weight(k) * x, k};
      },
      [=] ANTICHAIN_DEVICE(Index row, const Largest& all) {
        const int32_t label = labels[row];
        n.largest[row] = all.value;
        n.log_sum[row] = all.total / double(l.classes);  // until the next launch: the mean
        const bool right = label >= 0 && Index(label) == all.at && !l.pads(label);
        if (outcomes)
          outcomes[row].right = right;
        else
          y[2 * row + 1] = right ? 1.0f : 0.0f;
      });
  fold<Total>(
      stream, l.classes, l.rows(),
      [=] ANTICHAIN_DEVICE(Index k, Index row) {
        return Total{exp(double(float(logits[l.at(row, k)])) - n.largest[row])};
      },
      [=] ANTICHAIN_DEVICE(Index row, const Total& sum) {
        const double log_sum = log(sum.value), offset = n.largest[row] + log_sum;
        const double mean = n.log_sum[row] - l.mean_weight * offset;  // of weight · log softmax
        n.log_sum[row] = log_sum;
        const double loss = loss_of_row(l, logits, labels, row, offset, mean);
        if (outcomes)
          outcomes[row].loss = loss;
        else
          y[2 * row] = float(loss);
      });
}

// The same where the logits of a row lie one behind the other.
template <class T>
void loss_of_classes_last(Stream stream, const Loss& l, const T* logits, const int32_t* labels,
                          const Normaliser& n, OnlineSums* partials, Outcome* outcomes, float* y) {
  fold_wide_rows<OnlineSums>(
      stream, partials, l.rows(), l.classes,
      [=] ANTICHAIN_DEVICE(Index row, Index k) {
        if (k >= l.classes) return OnlineSums{-HUGE_VAL, 0, 0, k};
        const double x = double(float(logits[l.at(row, k)]));
        return OnlineSums{x, 1, l.weight(k) * x, k};
      },
      [=] ANTICHAIN_DEVICE(Index row, const OnlineSums& all) {
        const int32_t label = labels[row];
        const double log_sum = log(all.sum), offset = all.largest + log_sum;
        const double mean = all.total / double(l.classes) - l.mean_weight * offset;
        n.largest[row] = all.largest;
        n.log_sum[row] = log_sum;
        const double loss = loss_of_row(l, logits, labels, row, offset, mean);
        const bool right = label >= 0 && Index(label) == all.at && !l.pads(label);
        if (outcomes) {
          outcomes[row] = {loss, right ? 1.0 : 0.0};
        } else {
          y[2 * row] = float(loss);
          y[2 * row + 1] = right ? 1.0f : 0.0f;
        }
      });
}

void sum_positions(Stream stream, const Loss& l, const Outcome* outcomes, Outcome* partials, float* y) {
  fold_rows<Outcome>(
      stream, partials, l.samples, l.positions,
      [=] ANTICHAIN_DEVICE(Index n, Index i) { return outcomes[n * l.positions + i]; },
      [=] ANTICHAIN_DEVICE(Index n, const Outcome& all) {
        y[2 * n] = float(all.loss);
        y[2 * n + 1] = float(all.right / double(l.positions));
      });
}

template <class T>
void loss_gradient(Stream stream, const Loss& l, const T* logits, const int32_t* labels, const Normaliser& n,
                   double scale, T* dx) {
  for_each(stream, int64_t(l.rows()) * l.classes, [=] ANTICHAIN_DEVICE(Index i) {
    const Index plane = l.classes_last ? i : i / l.positions, k = plane % l.classes;
    const Index row = l.classes_last ? i / l.classes : plane / l.classes * l.positions + i % l.positions;
    const int32_t label = labels[row];
    const bool wrong = l.wrong(label) && !l.pads(label);
    const double own = l.weight(wrong || l.pads(label) ? 0 : Index(label));
    // The sum of the target.
    const double sum = l.mean_weight + (1 - l.smoothing) * (own - l.mean_weight);
    double gradient = sum * exp(double(float(logits[i])) - n.largest[row] - n.log_sum[row]) -
                      l.smoothing / double(l.classes) * l.weight(k);
    if (label >= 0 && Index(label) == k) gradient -= (1 - l.smoothing) * own;
    if (wrong) gradient = double(nanf(""));
    dx[i] = T(l.pads(label) ? 0.0f : float(scale * gradient));
  });
}

// The shares of a sample, beside Σ share · logit.
struct SharesAndProduct {
  Largest shares;
  double product;
  ANTICHAIN_ANYWHERE void merge(const SharesAndProduct& other) {
    shares.merge(other.shares);
    product += other.product;
  }
};

// Holds for each sample Σ share and Σ share · logit.
struct ShareSums {
  double *sum, *product;
};

void loss_of_shares(Stream stream, const Loss& l, const float* logits, const float* shares,
                    const Normaliser& n, const ShareSums& s, float* y) {
  fold<Largest>(
      stream, l.classes, l.samples,
      [=] ANTICHAIN_DEVICE(Index k, Index sample) {
        const double x = double(logits[sample * l.classes + k]);
        return Largest{x, x, k};
      },
      [=] ANTICHAIN_DEVICE(Index sample, const Largest& all) {
        n.largest[sample] = all.value;
        n.log_sum[sample] = all.total / double(l.classes);  // until the last launch: the mean
        s.sum[sample] = double(all.at);                     // until the next launch
      });
  fold<SharesAndProduct>(
      stream, l.classes, l.samples,
      [=] ANTICHAIN_DEVICE(Index k, Index sample) {
        const double share = double(shares[sample * l.classes + k]);
        return SharesAndProduct{{share, share, k}, share * double(logits[sample * l.classes + k])};
      },
      [=] ANTICHAIN_DEVICE(Index sample, const SharesAndProduct& all) {
        const bool right = all.shares.total != 0 && double(all.shares.at) == s.sum[sample];
        s.sum[sample] = all.shares.total;
        s.product[sample] = all.product;
        y[2 * sample + 1] = right ? 1.0f : 0.0f;
      });
  fold<Total>(
      stream, l.classes, l.samples,
      [=] ANTICHAIN_DEVICE(Index k, Index sample) {
        return Total{exp(double(logits[sample * l.classes + k]) - n.largest[sample])};
      },
      [=] ANTICHAIN_DEVICE(Index sample, const Total& total) {
        const double log_sum = log(total.value), offset = n.largest[sample] + log_sum;
        const double mean = n.log_sum[sample] - offset;  // of log softmax
        const double own = s.product[sample] - s.sum[sample] * offset;
        n.log_sum[sample] = log_sum;
        y[2 * sample] = s.sum[sample] == 0 ? 0.0f : float(-(1 - l.smoothing) * own - l.smoothing * mean);
      });
}

void loss_of_shares_gradient(Stream stream, const Loss& l, const float* logits, const float* shares,
                             const Normaliser& n, const ShareSums& s, double scale, float* dx) {
  for_each(stream, int64_t(l.samples) * l.classes, [=] ANTICHAIN_DEVICE(Index i) {
    const Index sample = i / l.classes;
    const double target = (1 - l.smoothing) * double(shares[i]) + l.smoothing / double(l.classes);
    const double sum = 1 + (1 - l.smoothing) * (s.sum[sample] - 1);  // of the target
    const double softmax = exp(double(logits[i]) - n.largest[sample] - n.log_sum[sample]);
    dx[i] = s.sum[sample] == 0 ? 0.0f : float(scale * (sum * softmax - target));
  });
}

class SoftmaxCrossEntropyKernel : public Kernel {
 public:
  SoftmaxCrossEntropyKernel(const SoftmaxCrossEntropy& op, const Shape& logits, bool of_shares)
      : class_weights_(op.options.class_weights), of_shares_(of_shares) {
    index_of(logits.elements());
    const auto [samples, classes, positions] = op.sizes(logits);
    double sum = class_weights_.empty() ? 1 : 0;
    for (const float weight : class_weights_) sum += double(weight) / double(classes);
    loss_ = {.samples = index_of(samples),
             .classes = index_of(classes),
             .positions = index_of(positions),
             .smoothing = double(op.options.label_smoothing),
             .mean_weight = sum,
             .ignores = op.options.ignore_index.has_value(),
             .ignored = op.options.ignore_index.value_or(0),
             .classes_last = op.options.classes_last};
  }

  static bool of_shares(std::span<const Shape> x) { return x[0] == x[1]; }
  // Numbers that forward leaves for backward, for each sample.
  static int64_t kept(const SoftmaxCrossEntropy& op, std::span<const Shape> x) {
    return of_shares(x) ? 4 : 2 * op.sizes(x[0]).positions;
  }
  // Where a sample has several positions, their outcomes and parts of their sums; with classes_last parts of
  // the sums of all rows.
  static int64_t partials_bytes(const LossSizes& sizes, bool classes_last) {
    const int64_t rows = sizes.samples * sizes.positions;
    int64_t bytes = classes_last ? Scratch::rounded(rows * wide_columns * int64_t(sizeof(OnlineSums))) : 0;
    if (sizes.positions > 1)
      bytes += Scratch::rounded(rows * int64_t(sizeof(Outcome))) +
               Scratch::rounded(row_parts(sizes.samples, sizes.positions) * int64_t(sizeof(Outcome)));
    return bytes;
  }
  static int64_t workspace_bytes(const SoftmaxCrossEntropy& op, std::span<const Shape> x) {
    return Scratch::rounded(kept(op, x) * x[0][0] * int64_t(sizeof(double))) +
           partials_bytes(op.sizes(x[0]), op.options.classes_last);
  }

  void prepare(Context& context, std::span<const Tensor>, std::span<const Tensor> prepared) const override {
    if (class_weights_.empty()) return;
    put_numbers(stream_of(context), class_weights_.data(), std::ssize(class_weights_),
                prepared[0].data<float>());
  }

  void forward(Context& context, const Forward& f) const override {
    const int64_t numbers = (of_shares_ ? 4 : 2 * int64_t(loss_.positions)) * int64_t(loss_.samples);
    const bool stashes = f.mode == Mode::train && !f.stash.empty();
    const LossSizes sizes{loss_.samples, loss_.classes, loss_.positions};
    Scratch scratch(context, (stashes ? 0 : Scratch::rounded(numbers * int64_t(sizeof(double)))) +
                                 partials_bytes(sizes, loss_.classes_last));
    double* at = stashes ? f.stash[0].data<double>() : scratch.take<double>(numbers);
    float* y = f.y.data<float>();
    if (of_shares_)
      return loss_of_shares(stream_of(context), loss_, f.x[0].data<float>(), f.x[1].data<float>(),
                            normaliser(at), share_sums(at), y);
    const bool several = loss_.positions > 1;
    Outcome* outcomes = several ? scratch.take<Outcome>(loss_.rows()) : nullptr;
    const int32_t* labels = f.x[1].data<int32_t>();
    const Loss l = with_weights(f.prepared);
    if (loss_.classes_last) {
      auto* partials = scratch.take<OnlineSums>(int64_t(loss_.rows()) * wide_columns);
      with_type(f.x[0].dtype(), [&]<class T>() {
        loss_of_classes_last(stream_of(context), l, f.x[0].data<T>(), labels, normaliser(at), partials,
                             outcomes, y);
      });
    } else {
      loss(stream_of(context), l, f.x[0].data<float>(), labels, normaliser(at), outcomes, y);
    }
    if (several)
      sum_positions(stream_of(context), loss_, outcomes,
                    scratch.take<Outcome>(row_parts(loss_.samples, loss_.positions)), y);
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    double* at = b.stash[0].data<double>();
    const auto scale = double(b.loss_scale);
    if (of_shares_)
      return loss_of_shares_gradient(stream_of(context), loss_, b.x[0].data<float>(), b.x[1].data<float>(),
                                     normaliser(at), share_sums(at), scale, b.dx[0].data<float>());
    with_type(b.x[0].dtype(), [&]<class T>() {
      loss_gradient(stream_of(context), with_weights(b.prepared), b.x[0].data<T>(), b.x[1].data<int32_t>(),
                    normaliser(at), scale, b.dx[0].data<T>());
    });
  }

 private:
  Loss with_weights(std::span<const Tensor> prepared) const {
    Loss loss = loss_;
    if (!class_weights_.empty()) loss.weights = prepared[0].data<float>();
    return loss;
  }
  Normaliser normaliser(double* at) const { return {at, at + loss_.rows()}; }
  ShareSums share_sums(double* at) const { return {at + 2 * loss_.samples, at + 3 * loss_.samples}; }

  const std::vector<float> class_weights_;
  const bool of_shares_;
  Loss loss_;  // without weights
};

}  // namespace

KernelEntry softmax_cross_entropy_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            using Kernel = SoftmaxCrossEntropyKernel;
            const auto& loss = static_cast<const SoftmaxCrossEntropy&>(op);
            Lowering l{.x = {Layout::plain, Layout::plain},
                       .stash = {{.shape = {Kernel::kept(loss, x), x[0][0]}, .dtype = DType::f64}},
                       .keeps_x = true,
                       .workspace_bytes = Kernel::workspace_bytes(loss, x)};  // float32 in all
            if (loss.options.classes_last) l.precision = precision;
            if (const auto classes = std::ssize(loss.options.class_weights); classes > 0)
              l.prepared = {{.shape = {classes}}};
            return l;
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        const auto& loss = static_cast<const SoftmaxCrossEntropy&>(op);
        if (loss.options.classes_last) refuse_shares(x[1]);
        return std::make_unique<SoftmaxCrossEntropyKernel>(loss, x[0].shape, x[1].dtype != DType::i32);
      }};
}

}  // namespace antichain::cuda
