// Mean folds the terms of a sum in double precision. Backward takes, per number of x, its sum's gradient.
#include "layers/mean.h"

#include "framework/cuda/launch.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// These are MeanAxes (layers/mean.h) of 32 bits.
struct MeanPlaces {
  Strided<3, Index> sums;
  Strided<2, Index> terms;
  Strided<Shape::max_rank, Index> sum_of;
  static_assert(sizeof decltype(sums)::extents[0] == 4, "no division of 64 bits");

  explicit MeanPlaces(const MeanAxes& wide) : sums(wide.sums), terms(wide.terms), sum_of(wide.sum_of) {}
};

template <class T>
void average(Stream stream, const MeanPlaces& axes, const T* x, T* y) {
  const double count = double(axes.terms.elements());
  fold<Sum>(
      stream, axes.terms.elements(), axes.sums.elements(),
      [=] ANTICHAIN_DEVICE(Index term, Index sum) {
        return Sum{double(float(x[axes.sums.at(sum) + axes.terms.at(term)]))};
      },
      [=] ANTICHAIN_DEVICE(Index sum, const Sum& all) { y[sum] = T(float(all.value / count)); });
}

template <class T>
void spread(Stream stream, const MeanPlaces& axes, const T* dy, T* dx, bool adds) {
  const double count = double(axes.terms.elements());
  for_each(stream, axes.sum_of.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    // A term of a sum is rounded for storage before it is added.
    const T share = T(float(double(float(dy[axes.sum_of.at(i)])) / count));
    dx[i] = adds ? T(float(dx[i]) + float(share)) : share;
  });
}

template <class T>
class MeanKernel : public Kernel {
 public:
  MeanKernel(const Mean& op, const TensorSpec& x) : axes_(mean_axes(op, x)) { index_of(x.elements()); }

  void forward(Context& context, const Forward& f) const override {
    average(stream_of(context), axes_, f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0])
      spread(stream_of(context), axes_, b.dy.data<T>(), b.dx[0].data<T>(), b.into_dx(0) == Into::accumulate);
  }

 private:
  const MeanPlaces axes_;
};

}  // namespace

KernelEntry mean_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                return lower_mean(static_cast<const Mean&>(op), x[0], layout_of(x[0]), precision);
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<MeanKernel>(x[0].dtype, static_cast<const Mean&>(op), x[0]);
              }};
}

}  // namespace antichain::cuda
