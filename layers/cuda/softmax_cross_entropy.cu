// Softmax cross-entropy computes in double, relative to the largest logit, so that nothing overflows. Forward
// leaves the largest logit and the logarithm of the sum of exponentials for backward.
//
// A label that is no class can't be reported from here without waiting for the device. So its sample's loss
// and gradient are NaN, which the step's check for finite numbers finds.
#include "layers/softmax_cross_entropy.h"

#include <cmath>
#include <limits>

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

struct Loss {
  Index samples, classes;
  double smoothing;
};

// Holds each sample's largest logit and log Σ exp(logit − largest).
struct Normaliser {
  double *largest, *log_sum;
};

template <class T>
void loss(Stream stream, const Loss& l, const T* logits, const int32_t* labels, const Normaliser& n,
          float* y) {
  fold<Largest>(
      stream, l.classes, l.samples,
      [=] ANTICHAIN_DEVICE(Index k, Index sample) {
        const double x = double(float(logits[sample * l.classes + k]));
        return Largest{x, x, k};
      },
      [=] ANTICHAIN_DEVICE(Index sample, const Largest& all) {
        const int32_t label = labels[sample];
        n.largest[sample] = all.value;
        n.log_sum[sample] = all.total / double(l.classes);  // until the next launch: the mean
        y[2 * sample + 1] = label >= 0 && Index(label) == all.at ? 1.0f : 0.0f;
      });
  fold<Total>(
      stream, l.classes, l.samples,
      [=] ANTICHAIN_DEVICE(Index k, Index sample) {
        return Total{exp(double(float(logits[sample * l.classes + k])) - n.largest[sample])};
      },
      [=] ANTICHAIN_DEVICE(Index sample, const Total& sum) {
        const int32_t label = labels[sample];
        const double log_sum = log(sum.value), offset = n.largest[sample] + log_sum;
        const double mean = n.log_sum[sample] - offset;  // of log softmax
        n.log_sum[sample] = log_sum;
        if (label == -1) {
          y[2 * sample] = 0;
        } else if (label < 0 || Index(label) >= l.classes) {
          y[2 * sample] = nanf("");
        } else {
          const double own = double(float(logits[sample * l.classes + Index(label)])) - offset;
          y[2 * sample] = float(-(1 - l.smoothing) * own - l.smoothing * mean);
        }
      });
}

template <class T>
void loss_gradient(Stream stream, const Loss& l, const T* logits, const int32_t* labels, const Normaliser& n,
                   double scale, T* dx) {
  for_each(stream, int64_t(l.samples) * l.classes, [=] ANTICHAIN_DEVICE(Index i) {
    const Index sample = i / l.classes, k = i % l.classes;
    const int32_t label = labels[sample];
    double gradient = exp(double(float(logits[i])) - n.largest[sample] - n.log_sum[sample]) -
                      l.smoothing / double(l.classes);
    if (label >= 0 && Index(label) == k) gradient -= 1 - l.smoothing;
    if (label < -1 || (label >= 0 && Index(label) >= l.classes)) gradient = double(nanf(""));
    dx[i] = T(label == -1 ? 0.0f : float(scale * gradient));
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
  SoftmaxCrossEntropyKernel(const LossOptions& options, const Shape& logits, const Shape& labels)
      : loss_{index_of(logits[0]), index_of(logits[1]), double(options.label_smoothing)},
        of_shares_(labels.rank() == 2) {
    index_of(logits.elements());
  }

  // Numbers that forward leaves for backward, for each sample.
  static int64_t kept(const Shape& labels) { return labels.rank() == 2 ? 4 : 2; }
  static int64_t workspace_bytes(const Shape& logits, const Shape& labels) {
    return Scratch::rounded(kept(labels) * logits[0] * int64_t(sizeof(double)));
  }

  void forward(Context& context, const Forward& f) const override {
    const int64_t numbers = kept(f.x[1].shape()) * int64_t(loss_.samples);
    const bool stashes = f.mode == Mode::train && !f.stash.empty();
    Scratch scratch(context, stashes ? 0 : Scratch::rounded(numbers * int64_t(sizeof(double))));
    double* at = stashes ? f.stash[0].data<double>() : scratch.take<double>(numbers);
    const float* logits = f.x[0].data<float>();
    if (of_shares_)
      loss_of_shares(stream_of(context), loss_, logits, f.x[1].data<float>(), normaliser(at), share_sums(at),
                     f.y.data<float>());
    else
      loss(stream_of(context), loss_, logits, f.x[1].data<int32_t>(), normaliser(at), f.y.data<float>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    double* at = b.stash[0].data<double>();
    const float* logits = b.x[0].data<float>();
    if (of_shares_)
      loss_of_shares_gradient(stream_of(context), loss_, logits, b.x[1].data<float>(), normaliser(at),
                              share_sums(at), double(b.loss_scale), b.dx[0].data<float>());
    else
      loss_gradient(stream_of(context), loss_, logits, b.x[1].data<int32_t>(), normaliser(at),
                    double(b.loss_scale), b.dx[0].data<float>());
  }

 private:
  Normaliser normaliser(double* at) const { return {at, at + loss_.samples}; }
  ShareSums share_sums(double* at) const { return {at + 2 * loss_.samples, at + 3 * loss_.samples}; }

  const Loss loss_;
  const bool of_shares_;
};

}  // namespace

KernelEntry softmax_cross_entropy_entry() {
  return {
      .lower =
          [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision) {  // float32 in all
            return Lowering{
                .x = {Layout::plain, Layout::plain},
                .stash = {{.shape = {SoftmaxCrossEntropyKernel::kept(x[1]), x[0][0]}, .dtype = DType::f64}},
                .keeps_x = true,
                .workspace_bytes = SoftmaxCrossEntropyKernel::workspace_bytes(x[0], x[1])};
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<SoftmaxCrossEntropyKernel>(
            static_cast<const SoftmaxCrossEntropy&>(op).options, x[0].shape, x[1].shape);
      }};
}

}  // namespace antichain::cuda
