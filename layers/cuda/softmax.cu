// Softmax folds the largest number and the sum of exponentials over the channels of each pixel (or row), and
// then makes one pass over the elements. Sums are in double.
#include "layers/softmax.h"

#include "framework/cuda/launch.h"
#include "layers/cuda/activation_formulas.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct Most {
  float value;
  ANTICHAIN_ANYWHERE void merge(const Most& other) { value = other.value > value ? other.value : value; }
};

// Channels lie beside each other: in NHWC, and in rows.
struct Rows {
  Index count, channels;
  int64_t elements() const { return int64_t(count) * channels; }
};

template <class T>
void exponentials(Stream stream, const Rows& rows, const T* x, float* most, double* sums) {
  const Index channels = rows.channels;
  fold<Most>(
      stream, channels, rows.count,
      [=] ANTICHAIN_DEVICE(Index c, Index row) { return Most{float(x[row * channels + c])}; },
      [=] ANTICHAIN_DEVICE(Index row, const Most& all) { most[row] = all.value; });
  fold<Sum>(
      stream, channels, rows.count,
      [=] ANTICHAIN_DEVICE(Index c, Index row) {
        return Sum{double(formulas::exp_of_negative(float(x[row * channels + c]) - most[row]))};
      },
      [=] ANTICHAIN_DEVICE(Index row, const Sum& all) { sums[row] = all.value; });
}

template <class T>
void quotients(Stream stream, const Rows& rows, const T* x, const float* most, const double* sums, T* y) {
  const Index channels = rows.channels;
  for_each(stream, rows.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index row = i / channels;
    y[i] = T(float(double(formulas::exp_of_negative(float(x[i]) - most[row])) / sums[row]));
  });
}

template <class T>
void softmax_gradient(Stream stream, const Rows& rows, const T* y, const T* dy, double* sums, T* dx) {
  const Index channels = rows.channels;
  fold<Sum>(
      stream, channels, rows.count,
      [=] ANTICHAIN_DEVICE(Index c, Index row) {
        const Index i = row * channels + c;
        return Sum{double(float(y[i]) * float(dy[i]))};
      },
      [=] ANTICHAIN_DEVICE(Index row, const Sum& all) { sums[row] = all.value; });
  for_each(stream, rows.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    dx[i] = T(float(y[i]) * (float(dy[i]) - float(sums[i / channels])));
  });
}

Rows rows_of(const Shape& x) {
  index_of(x.elements());
  return {index_of(x.elements() / x[1]), index_of(x[1])};
}

int64_t workspace_bytes(const Rows& rows) {
  return Scratch::rounded(rows.count * int64_t(sizeof(float))) +
         Scratch::rounded(rows.count * int64_t(sizeof(double)));
}

template <class T>
class SoftmaxKernel : public Kernel {
 public:
  explicit SoftmaxKernel(const Shape& x) : rows_(rows_of(x)) {}

  void forward(Context& context, const Forward& f) const override {
    const Stream stream = stream_of(context);
    Scratch scratch(context, workspace_bytes(rows_));
    auto* most = scratch.take<float>(rows_.count);
    auto* sums = scratch.take<double>(rows_.count);
    exponentials(stream, rows_, f.x[0].data<T>(), most, sums);
    quotients(stream, rows_, f.x[0].data<T>(), most, sums, f.y.data<T>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    Scratch scratch(context, workspace_bytes(rows_));
    softmax_gradient(stream_of(context), rows_, b.y.data<T>(), b.dy.data<T>(),
                     scratch.take<double>(rows_.count), b.dx[0].data<T>());
  }

 private:
  const Rows rows_;
};

}  // namespace

KernelEntry softmax_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const Layout layout = layout_of(x[0]);
                return Lowering{.x = {layout},
                                .y = layout,
                                .precision = precision,
                                .keeps_y = true,
                                .workspace_bytes = workspace_bytes(rows_of(x[0]))};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<SoftmaxKernel>(x[0].dtype, x[0].shape); }};
}

}  // namespace antichain::cuda
