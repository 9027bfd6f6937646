// Global pooling computes the mean of every channel of every image: a fold over the pixels in double, with 32
// threads for each mean, because squeeze-and-excitation has many pixels and few channels.
#include "layers/global_pool.h"

#include "framework/cuda/arrays.h"
#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void pool(Stream stream, const Image& image, const T* x, T* y) {
  const Index pixels = image.height * image.width, channels = image.channels;
  const auto pixel_of = [=] ANTICHAIN_DEVICE(Index pixel, Index mean) {
    return Sum{double(float(x[(mean / channels * pixels + pixel) * channels + mean % channels]))};
  };
  fold<Sum>(
      stream, pixels, int64_t(image.images) * channels, pixel_of,
      [=] ANTICHAIN_DEVICE(Index mean, const Sum& all) { y[mean] = T(float(all.value / double(pixels))); });
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
    pool(stream_of(context), x_, f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    in_channel_packs<T>(
        x_.channels, [&]<int width>() { spread<width>(stream_of(context), x_, dy, dx); }, dx, dy);
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
