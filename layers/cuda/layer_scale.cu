// LayerScale takes one pass over the elements each way. The gradients of the factors are sums over the pixels
// of all images.
#include "layers/layer_scale.h"

#include "framework/cuda/passes.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void scale_channels(Stream stream, const PixelParts& parts, const float* factors, const T* x, T* y,
                    bool adds) {
  for_channels(
      stream, parts.pixels, parts.channels,
      [=] ANTICHAIN_DEVICE(float factor, float number, float& sum) {
        // A term of a sum is rounded for storage before it is added, as where another kernel adds it.
        sum = adds ? sum + float(T(number * factor)) : number * factor;
      },
      channel(factors), read(x), into(y, adds));
}

template <class T>
void factor_gradient(Stream stream, const PixelParts& parts, const T* x, const T* dy,
                     const Partials<Sum>& partials, float* dw, bool adds) {
  sum_channels<SumRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(SumRun & run, bool, float number, float gradient) {
        run.part += number * gradient;
      },
      [=] ANTICHAIN_DEVICE(Index c, const Sum& all) {
        dw[c] = adds ? dw[c] + float(all.value) : float(all.value);
      },
      read(x), read(dy));
}

PixelParts parts_of(const Shape& x) {
  index_of(x.elements());
  return {x.elements() / x[1], x[1]};
}

int64_t workspace_bytes(const PixelParts& parts) { return Partials<Sum>::bytes(parts); }

template <class T>
class LayerScaleKernel : public Kernel {
 public:
  explicit LayerScaleKernel(const Shape& x) : parts_(parts_of(x)) {}

  void forward(Context& context, const Forward& f) const override {
    scale_channels(stream_of(context), parts_, f.params[0].data<float>(), f.x[0].data<T>(), f.y.data<T>(),
                   false);
  }

  void backward(Context& context, const Backward& b) const override {
    const Stream stream = stream_of(context);
    const T* dy = b.dy.data<T>();
    if (!b.dx.empty() && b.dx[0])
      scale_channels(stream, parts_, b.params[0].data<float>(), dy, b.dx[0].data<T>(),
                     b.into_dx(0) == Into::accumulate);
    if (b.dw.empty() || !b.dw[0]) return;
    Scratch scratch(context, workspace_bytes(parts_));
    factor_gradient(stream, parts_, b.x[0].data<T>(), dy, {scratch, parts_}, b.dw[0].data<float>(),
                    b.into == Into::accumulate);
  }

 private:
  const PixelParts parts_;
};

}  // namespace

KernelEntry layer_scale_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                return Lowering{.x = {Layout::nhwc},
                                .y = Layout::nhwc,
                                .params = {Layout::plain},
                                .precision = precision,
                                .keeps_x = true,
                                .adds_dx = true,
                                .workspace_bytes = workspace_bytes(parts_of(x[0]))};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<LayerScaleKernel>(x[0].dtype, x[0].shape); }};
}

}  // namespace antichain::cuda
