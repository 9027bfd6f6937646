// The mean of every channel of every image: one thread each, over the pixels in order, in double precision.
#include "layers/global_pool.h"

#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void pool(Stream stream, const Image& image, const T* x, T* y) {
  for_each(stream, int64_t(image.images) * image.channels, [=] ANTICHAIN_DEVICE(Index i) {
    const Index pixels = image.height * image.width;
    const T* first = x + i / image.channels * pixels * image.channels + image.channel(i);
    double sum = 0;
    for (Index p = 0; p < pixels; ++p) sum += double(float(first[p * image.channels]));
    y[i] = T(float(sum / double(pixels)));
  });
}

template <class T>
void spread(Stream stream, const Image& image, const T* dy, T* dx) {
  const float share = 1.0f / float(image.height * image.width);
  for_each(stream, image.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    dx[i] = T(float(dy[image.image(i) * image.channels + image.channel(i)]) * share);
  });
}

template <class T>
class GlobalPoolKernel : public Kernel {
 public:
  explicit GlobalPoolKernel(const Shape& x) : x_(x) {}
  void forward(Context& context, const Forward& f) const override {
    pool(stream_of(context), x_, f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) spread(stream_of(context), x_, b.dy.data<T>(), b.dx[0].data<T>());
  }

 private:
  const Image x_;
};

}  // namespace

KernelEntry global_average_pool_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout>, Precision precision) {
                return Lowering{.x = {Layout::nhwc}, .y = Layout::nhwc, .precision = precision};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<GlobalPoolKernel>(x[0].dtype, x[0].shape); }};
}

}  // namespace antichain::cuda
