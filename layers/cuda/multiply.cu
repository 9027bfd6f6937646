// Multiply works element by element. Where the second factor has one number per channel of each image, its
// gradient is folded over the pixels in double.
#include "layers/multiply.h"

#include "framework/cuda/passes.h"
#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void multiply_elements(Stream stream, int64_t count, const T* a, const T* b, T* y, bool adds) {
  for_elements(
      stream, count,
      [=] ANTICHAIN_DEVICE(Index, float left, float right, float& sum) {
        // A term of a sum is rounded for storage before it is added, as where another kernel adds it.
        sum = adds ? sum + float(T(left * right)) : left * right;
      },
      read(a), read(b), into(y, adds));
}

template <int width, class T>
void multiply_gates(Stream stream, const Image& image, const T* a, const T* gates, T* y, bool adds) {
  for_each(stream, image.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width;
    float pack[width], gate[width], sum[width];
    load_pack<width>(a + i, pack);
    load_pack<width>(gates + image.image(i) * image.channels + image.channel(i), gate);
    if (adds) load_pack<width>(y + i, sum);
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) {
      const float product = pack[j] * gate[j];
      pack[j] = adds ? sum[j] + float(T(product)) : product;
    }
    store_pack<width>(pack, y + i);
  });
}

template <class T>
void gate_gradient(Stream stream, const Image& image, const T* a, const T* dy, T* dgates, bool adds) {
  const Index pixels = image.height * image.width, channels = image.channels;
  const auto of_gate = [=] ANTICHAIN_DEVICE(Index pixel, Index gate) {
    const Index i = (gate / channels * pixels + pixel) * channels + gate % channels;
    return Sum{double(float(a[i]) * float(dy[i]))};
  };
  fold<Sum>(stream, pixels, int64_t(image.images) * channels, of_gate,
            [=] ANTICHAIN_DEVICE(Index gate, const Sum& all) {
              const T fresh = T(float(all.value));
              dgates[gate] = adds ? T(float(dgates[gate]) + float(fresh)) : fresh;
            });
}

template <class T>
class MultiplyKernel : public Kernel {
 public:
  explicit MultiplyKernel(std::span<const TensorSpec> x) : a_(x[0].shape), gates_(x[0].shape != x[1].shape) {}

  void forward(Context& context, const Forward& f) const override {
    multiply(context, f.x[0].data<T>(), f.x[1].data<T>(), f.y.data<T>(), false);
  }

  void backward(Context& context, const Backward& b) const override {
    const T *x[] = {b.x[0].data<T>(), b.x[1].data<T>()}, *dy = b.dy.data<T>();
    for (size_t i = 0; i < b.dx.size(); ++i) {
      if (!b.dx[i]) continue;
      T* dx = b.dx[i].data<T>();
      const bool adds = b.into_dx(i) == Into::accumulate;
      if (i == 1 && gates_)
        gate_gradient(stream_of(context), a_, x[0], dy, dx, adds);
      else
        multiply(context, dy, x[1 - i], dx, adds);
    }
  }

 private:
  void multiply(Context& context, const T* a, const T* b, T* y, bool adds) const {
    const Stream stream = stream_of(context);
    if (!gates_) return multiply_elements(stream, a_.elements(), a, b, y, adds);
    in_channel_packs<T>(
        a_.channels, [&]<int width>() { multiply_gates<width>(stream, a_, a, b, y, adds); }, a, b, y);
  }

  const Image a_;
  const bool gates_;
};

}  // namespace

KernelEntry multiply_entry() {
  return {
      .lower =
          [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            const Layout layout = layout_of(x[0]);
            return Lowering{
                .x = {layout, layout}, .y = layout, .precision = precision, .keeps_x = true, .adds_dx = true};
          },
      .make = [](const Op&, std::span<const TensorSpec> x,
                 const Lowering&) { return make_typed<MultiplyKernel>(x[0].dtype, x); }};
}

}  // namespace antichain::cuda
