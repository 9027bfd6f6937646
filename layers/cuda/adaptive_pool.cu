// Adaptive average pooling gathers a window per output in forward, in double precision. Backward gathers, per
// pixel, the windows that contain it, in row-major order.
#include "layers/adaptive_pool.h"

#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// Pixels begin … end − 1 along one side belong to output i.
struct Span {
  Index begin, end;
  ANTICHAIN_ANYWHERE Span(Index i, Index in, Index out)
      : begin(i * in / out), end(((i + 1) * in + out - 1) / out) {}
  ANTICHAIN_ANYWHERE Index size() const { return end - begin; }
};

// Outputs begin … end − 1 have windows that contain pixel i along one side: begin(o) ≤ i < end(o), solved for
// o.
struct Holders {
  Index begin, end;
  ANTICHAIN_ANYWHERE Holders(Index i, Index in, Index out)
      : begin(i * out / in), end(((i + 1) * out + in - 1) / in) {}
};

template <class T>
void pool(Stream stream, const Image& x, const Image& y, const T* from, T* to) {
  for_each(stream, y.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Span rows(y.row(i), x.height, y.height), columns(y.column(i), x.width, y.width);
    double sum = 0;
    for (Index r = rows.begin; r < rows.end; ++r)
      for (Index q = columns.begin; q < columns.end; ++q)
        sum += double(float(from[x.at(y.image(i), r, q, y.channel(i))]));
    to[i] = T(float(sum / double(rows.size() * columns.size())));
  });
}

template <class T>
void spread(Stream stream, const Image& x, const Image& y, const T* dy, T* dx) {
  for_each(stream, x.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Holders rows(x.row(i), x.height, y.height), columns(x.column(i), x.width, y.width);
    float sum = 0;
    for (Index r = rows.begin; r < rows.end; ++r)
      for (Index q = columns.begin; q < columns.end; ++q) {
        const Index area = Span(r, x.height, y.height).size() * Span(q, x.width, y.width).size();
        sum += float(dy[y.at(x.image(i), r, q, x.channel(i))]) * (1.0f / float(area));
      }
    dx[i] = T(sum);
  });
}

template <class T>
class AdaptivePoolKernel : public Kernel {
 public:
  AdaptivePoolKernel(const Shape& x, const Shape& y) : x_(x), y_(y) {}
  void forward(Context& context, const Forward& f) const override {
    pool(stream_of(context), x_, y_, f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) spread(stream_of(context), x_, y_, b.dy.data<T>(), b.dx[0].data<T>());
  }

 private:
  const Image x_, y_;
};

}  // namespace

KernelEntry adaptive_average_pool_entry() {
  return {
      .lower =
          [](const Op&, std::span<const Shape>, std::span<const Layout>, Precision precision) {
            return Lowering{.x = {Layout::nhwc}, .y = Layout::nhwc, .precision = precision};
          },
      .make =
          [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<AdaptivePoolKernel>(x[0].dtype, x[0].shape, op.infer({&x[0].shape, 1}).y.shape);
          }};
}

}  // namespace antichain::cuda
