// LayerScale works in any layout. The gradients of the factors are sums over the pixels of each image, added
// up in double in the order of the images; each block of channels is computed by one thread.
#include "layers/layer_scale.h"

#include "layers/cpu/channel_scale.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

template <class T>
class LayerScaleKernel : public Kernel {
 public:
  explicit LayerScaleKernel(const TensorSpec& x) : scale_(x) {}

  void forward(Context& context, const Forward& f) const override {
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    for_each_plane(view().planes(), context.threads(), [&](int64_t plane) {
      scale_.forward(x, of_block(f.params, plane % view().blocks), y, plane);
    });
  }

  void backward(Context& context, const Backward& b) const override {
    T* dx = !b.dx.empty() && b.dx[0] ? b.dx[0].data<T>() : nullptr;
    float* dw = !b.dw.empty() && b.dw[0] ? b.dw[0].data<float>() : nullptr;
    if (!dx && !dw) return;
    for_each_plane(view().blocks, context.threads(), [&](int64_t block) {
      double sum[16], all[16] = {};
      const ScaleGradient<T> pass{.x = b.x[0].data<T>(),
                                  .dy = b.dy.data<T>(),
                                  .dx = dx,
                                  .adds = b.into_dx(0) == Into::accumulate,
                                  .sum = dw ? sum : nullptr};
      for (int64_t n = 0; n < view().images; ++n) {
        scale_.backward(pass, of_block(b.params, block), n * view().blocks + block);
        for (int64_t c = 0; dw && c < view().block; ++c) all[c] += sum[c];
      }
      for (int64_t c = 0; dw && c < scale_.channels(block); ++c) {
        float& to = dw[block * view().block + c];
        to = b.into == Into::accumulate ? to + float(all[c]) : float(all[c]);
      }
    });
  }

 private:
  const Activation& view() const { return scale_.view(); }
  const float* of_block(std::span<const Tensor> params, int64_t block) const {
    return params[0].data<float>() + block * view().block;
  }

  const ChannelScale<T> scale_;
};

}  // namespace

KernelEntry layer_scale_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
                const Layout layout = accept(offered[0]);
                return Lowering{.x = {layout},
                                .y = layout,
                                .params = {Layout::plain},
                                .precision = precision,
                                .keeps_x = true,
                                .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<LayerScaleKernel>(x[0].dtype, x[0]); }};
}

}  // namespace antichain::cpu
