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

class SoftmaxCrossEntropyKernel : public Kernel {
 public:
  SoftmaxCrossEntropyKernel(const LossOptions& options, const Shape& logits)
      : loss_{index_of(logits[0]), index_of(logits[1]), double(options.label_smoothing)} {
    index_of(logits.elements());
  }

  static int64_t workspace_bytes(const Shape& logits) {
    return Scratch::rounded(2 * logits[0] * int64_t(sizeof(double)));
  }

  void forward(Context& context, const Forward& f) const override {
    const int64_t numbers = 2 * int64_t(loss_.samples);
    const bool stashes = f.mode == Mode::train && !f.stash.empty();
    Scratch scratch(context, stashes ? 0 : Scratch::rounded(numbers * int64_t(sizeof(double))));
    double* at = stashes ? f.stash[0].data<double>() : scratch.take<double>(numbers);
    loss(stream_of(context), loss_, f.x[0].data<float>(), f.x[1].data<int32_t>(), normaliser(at),
         f.y.data<float>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    loss_gradient(stream_of(context), loss_, b.x[0].data<float>(), b.x[1].data<int32_t>(),
                  normaliser(b.stash[0].data<double>()), double(b.loss_scale), b.dx[0].data<float>());
  }

 private:
  Normaliser normaliser(double* at) const { return {at, at + loss_.samples}; }

  const Loss loss_;
};

}  // namespace

KernelEntry softmax_cross_entropy_entry() {
  return {
      .lower =
          [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision) {  // float32 in all
            return Lowering{.x = {Layout::plain, Layout::plain},
                            .stash = {{.shape = {2, x[0][0]}, .dtype = DType::f64}},
                            .keeps_x = true,
                            .workspace_bytes = SoftmaxCrossEntropyKernel::workspace_bytes(x[0])};
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<SoftmaxCrossEntropyKernel>(
            static_cast<const SoftmaxCrossEntropy&>(op).options, x[0].shape);
      }};
}

}  // namespace antichain::cuda
