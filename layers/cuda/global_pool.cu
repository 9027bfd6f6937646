// Global pooling computes the mean of every channel of every image: one thread per pack of channels, over the
// pixels in order, in double precision.
#include "layers/global_pool.h"

#include "framework/cuda/arrays.h"
#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <int width, class T>
void pool(Stream stream, const Image& image, const T* x, T* y) {
  for_each(stream, int64_t(image.images) * image.channels / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width, pixels = image.height * image.width;
    const T* first = x + i / image.channels * pixels * image.channels + image.channel(i);
    double sum[width] = {};
    float pack[width];
    for (Index pixel = 0; pixel < pixels; ++pixel) {
      load_pack<width>(first + pixel * image.channels, pack);
      ANTICHAIN_UNROLL
      for (int j = 0; j < width; ++j) sum[j] += double(pack[j]);
    }
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) pack[j] = float(sum[j] / double(pixels));
    store_pack<width>(pack, y + i);
  });
}

template <int width, class T>
void spread(Stream stream, const Image& image, const T* dy, T* dx) {
  const float share = 1.0f / float(image.height * image.width);
  for_each(stream, image.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width;
    float pack[width];
    load_pack<width>(dy + image.image(i) * image.channels + image.channel(i), pack);
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) pack[j] *= share;
    store_pack<width>(pack, dx + i);
  });
}

template <class T>
class GlobalPoolKernel : public Kernel {
 public:
  explicit GlobalPoolKernel(const Shape& x) : x_(x) {}
  void forward(Context& context, const Forward& f) const override {
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    in_packs<T>(fits(x, y), [&]<int width>() { pool<width>(stream_of(context), x_, x, y); });
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    in_packs<T>(fits(dx, dy), [&]<int width>() { spread<width>(stream_of(context), x_, dy, dx); });
  }

 private:
  bool fits(const T* x, const T* y) const {
    constexpr int width = int(pack_bytes / sizeof(T));
    return x_.channels % width == 0 && aligned<width>(read(x), read(y));
  }

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
