// Global pooling computes the mean of every channel of every image. Sums run over the pixels in order, in
// double precision.
#include "layers/global_pool.h"

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

template <class T>
class GlobalPoolKernel : public Kernel {
 public:
  explicit GlobalPoolKernel(const TensorSpec& x) : x_(x) {}

  void forward(Context& context, const Forward& f) const override {
    const T* from = f.x[0].data<T>();
    T* to = f.y.data<T>();
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const T* x = from + plane * x_.plane();
        double sum[B] = {};
        for (int64_t p = 0; p < x_.pixels(); ++p)
          for (int c = 0; c < B; ++c) sum[c] += float(x[p * B + c]);
        for (int c = 0; c < B; ++c) to[plane * B + c] = T(float(sum[c] / double(x_.pixels())));
      });
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* from = b.dy.data<T>();
    T* to = b.dx[0].data<T>();
    const float share = 1.0f / float(x_.pixels());
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const T* dy = from + plane * B;
        T* dx = to + plane * x_.plane();
        for (int64_t p = 0; p < x_.pixels(); ++p)
          for (int c = 0; c < B; ++c) dx[p * B + c] = T(dy[c] * share);
      });
    });
  }

 private:
  const Activation x_;
};

}  // namespace

KernelEntry global_average_pool_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
                const Layout layout = accept(offered[0]);
                return Lowering{.x = {layout}, .y = layout, .precision = precision};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<GlobalPoolKernel>(x[0].dtype, x[0]); }};
}

}  // namespace antichain::cpu
