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
  const float* weights = nullptr;  // of the classes; nullptr: 1

  ANTICHAIN_ANYWHERE Index rows() const { return samples * positions; }
  ANTICHAIN_ANYWHERE Index at(Index row, Index k) const {
    return (row / positions * classes + k) * positions + row % positions;
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
        const int32_t label = labels[row];
        const double log_sum = log(sum.value), offset = n.largest[row] + log_sum;
        const double mean = n.log_sum[row] - l.mean_weight * offset;  // of weight · log softmax
        n.log_sum[row] = log_sum;
        double loss = 0;
        if (l.pads(label)) {
          loss = 0;
        } else if (l.wrong(label)) {
          loss = double(nanf(""));
        } else {
          const double own = double(float(logits[l.at(row, Index(label))])) - offset;
          loss = -(1 - l.smoothing) * l.weight(Index(label)) * own - l.smoothing * mean;
        }
        if (outcomes)
          outcomes[row].loss = loss;
        else
          y[2 * row] = float(loss);
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
    const Index plane = i / l.positions, k = plane % l.classes;
    const Index row = plane / l.classes * l.positions + i % l.positions;
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
    double sum = class_weights_.empty() ? 1 : 0;
    for (const float weight : class_weights_) sum += double(weight) / double(logits[1]);
    loss_ = {.samples = index_of(logits[0]),
             .classes = index_of(logits[1]),
             .positions = index_of(logits.elements() / (logits[0] * logits[1])),
             .smoothing = double(op.options.label_smoothing),
             .mean_weight = sum,
             .ignores = op.options.ignore_index.has_value(),
             .ignored = op.options.ignore_index.value_or(0)};
  }

  static bool of_shares(std::span<const Shape> x) { return x[0] == x[1]; }
  // Numbers that forward leaves for backward, for each sample.
  static int64_t kept(std::span<const Shape> x) {
    return of_shares(x) ? 4 : 2 * (x[0].elements() / (x[0][0] * x[0][1]));
  }
  // Where a sample has several positions, their outcomes and parts of their sums.
  static int64_t outcomes_bytes(const Shape& logits) {
    const int64_t positions = logits.elements() / (logits[0] * logits[1]);
    if (positions == 1) return 0;
    return Scratch::rounded(logits[0] * positions * int64_t(sizeof(Outcome))) +
           Scratch::rounded(row_parts(logits[0], positions) * int64_t(sizeof(Outcome)));
  }
  static int64_t workspace_bytes(std::span<const Shape> x) {
    return Scratch::rounded(kept(x) * x[0][0] * int64_t(sizeof(double))) + outcomes_bytes(x[0]);
  }

  void prepare(Context& context, std::span<const Tensor>, std::span<const Tensor> prepared) const override {
    if (class_weights_.empty()) return;
    put_numbers(stream_of(context), class_weights_.data(), std::ssize(class_weights_),
                prepared[0].data<float>());
  }

  void forward(Context& context, const Forward& f) const override {
    const int64_t numbers = (of_shares_ ? 4 : 2 * int64_t(loss_.positions)) * int64_t(loss_.samples);
    const bool stashes = f.mode == Mode::train && !f.stash.empty();
    Scratch scratch(context, (stashes ? 0 : Scratch::rounded(numbers * int64_t(sizeof(double)))) +
                                 outcomes_bytes(f.x[0].shape()));
    double* at = stashes ? f.stash[0].data<double>() : scratch.take<double>(numbers);
    const float* logits = f.x[0].data<float>();
    float* y = f.y.data<float>();
    if (of_shares_)
      return loss_of_shares(stream_of(context), loss_, logits, f.x[1].data<float>(), normaliser(at),
                            share_sums(at), y);
    const bool several = loss_.positions > 1;
    Outcome* outcomes = several ? scratch.take<Outcome>(loss_.rows()) : nullptr;
    loss(stream_of(context), with_weights(f.prepared), logits, f.x[1].data<int32_t>(), normaliser(at),
         outcomes, y);
    if (several)
      sum_positions(stream_of(context), loss_, outcomes,
                    scratch.take<Outcome>(row_parts(loss_.samples, loss_.positions)), y);
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    double* at = b.stash[0].data<double>();
    const float* logits = b.x[0].data<float>();
    const auto scale = double(b.loss_scale);
    if (of_shares_)
      loss_of_shares_gradient(stream_of(context), loss_, logits, b.x[1].data<float>(), normaliser(at),
                              share_sums(at), scale, b.dx[0].data<float>());
    else
      loss_gradient(stream_of(context), with_weights(b.prepared), logits, b.x[1].data<int32_t>(),
                    normaliser(at), scale, b.dx[0].data<float>());
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
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision) {  // float32 in all
            using Kernel = SoftmaxCrossEntropyKernel;
            Lowering l{.x = {Layout::plain, Layout::plain},
                       .stash = {{.shape = {Kernel::kept(x), x[0][0]}, .dtype = DType::f64}},
                       .keeps_x = true,
                       .workspace_bytes = Kernel::workspace_bytes(x)};
            const auto& options = static_cast<const SoftmaxCrossEntropy&>(op).options;
            if (const auto classes = std::ssize(options.class_weights); classes > 0)
              l.prepared = {{.shape = {classes}}};
            return l;
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<SoftmaxCrossEntropyKernel>(static_cast<const SoftmaxCrossEntropy&>(op),
                                                           x[0].shape, x[1].dtype != DType::i32);
      }};
}

}  // namespace antichain::cuda
