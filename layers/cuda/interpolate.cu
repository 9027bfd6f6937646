// Interpolation computes a number of y per thread. Backward gathers, per number of x, the gradients of the
// pixels of y that read it, in row-major order.
#include "layers/interpolate.h"

#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/one_layout.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void enlarge(Stream stream, const LineMaps& maps, const Image& x, const Image& y, const T* from, T* to) {
  for_each(stream, y.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Between r = maps.rows.at(int64_t(y.row(i))), q = maps.columns.at(int64_t(y.column(i)));
    const auto at = [&](int64_t row, int64_t column) {
      return from[x.at(y.image(i), Index(row), Index(column), y.channel(i))];
    };
    if (!maps.rows.bilinear) {
      to[i] = at(r.first, q.first);
      return;
    }
    const float right = q.share, left = 1.0f - right;
    const float above = left * float(at(r.first, q.first)) + right * float(at(r.first, q.second));
    const float below = left * float(at(r.second, q.first)) + right * float(at(r.second, q.second));
    to[i] = T((1.0f - r.share) * above + r.share * below);
  });
}

template <class T>
void gather(Stream stream, const LineMaps& maps, const Image& x, const Image& y, const T* dy, T* dx,
            bool adds) {
  for_each(stream, x.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const int64_t row = int64_t(x.row(i)), column = int64_t(x.column(i));
    const int64_t end_row = maps.rows.end_of(row), end_column = maps.columns.end_of(column);
    float sum = 0;
    for (int64_t r = maps.rows.begin_of(row); r < end_row; ++r)
      for (int64_t q = maps.columns.begin_of(column); q < end_column; ++q) {
        const float share = maps.rows.weight(row, r) * maps.columns.weight(column, q);
        sum += share * float(dy[y.at(x.image(i), Index(r), Index(q), x.channel(i))]);
      }
    // A term of a sum is rounded for storage before it is added.
    dx[i] = adds ? T(float(dx[i]) + float(T(sum))) : T(sum);
  });
}

template <class T>
class InterpolateKernel : public Kernel {
 public:
  InterpolateKernel(const Interpolate& op, const Shape& x)
      : maps_(line_maps(op, x)), x_(x), y_(op.infer({&x, 1}).y.shape) {}

  void forward(Context& context, const Forward& f) const override {
    enlarge(stream_of(context), maps_, x_, y_, f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0])
      gather(stream_of(context), maps_, x_, y_, b.dy.data<T>(), b.dx[0].data<T>(),
             b.into_dx(0) == Into::accumulate);
  }

 private:
  const LineMaps maps_;
  const Image x_, y_;
};

}  // namespace

KernelEntry interpolate_entry() {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout>,
                      Precision precision) { return in_one_layout(Layout::nhwc, precision); },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<InterpolateKernel>(x[0].dtype, static_cast<const Interpolate&>(op),
                                                     x[0].shape);
              }};
}

}  // namespace antichain::cuda
