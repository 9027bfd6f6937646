// Softmax gathers the channels of one pixel in a row, computes in float32, and scatters the result, in any
// layout. Each image is computed by one thread.
#include "layers/softmax.h"

#include <omp.h>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/softmax_loops.h"

namespace antichain::cpu {
namespace {

// Returns the tensor as images; rows are images of one pixel.
TensorSpec as_image(TensorSpec x) {
  if (x.shape.rank() == 2) x.shape = {x.shape[0], x.shape[1], 1, 1};
  return x;
}

int64_t workspace_bytes(int threads, int64_t channels) {
  return threads * 2 * channels * int64_t(sizeof(float));
}

template <class T>
class SoftmaxKernel : public Kernel {
 public:
  explicit SoftmaxKernel(const TensorSpec& x) : view_(as_image(x)), loops_(best_loops<SoftmaxLoops>()) {}

  void forward(Context& context, const Forward& f) const override {
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    for_each_pixel(context, [&](float* row, float*, int64_t first) {
      gather(x + first, row);
      loops_.forward(row, view_.channels);
      scatter(row, y + first);
    });
    clear_padding(view_, y);
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T *y = b.y.data<T>(), *dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    for_each_pixel(context, [&](float* row, float* gradient, int64_t first) {
      gather(y + first, row);
      gather(dy + first, gradient);
      loops_.backward(row, gradient, view_.channels);
      scatter(gradient, dx + first);
    });
    clear_padding(view_, dx);
  }

 private:
  // Calls f with two rows of scratch, and where the pixel's first channel is.
  template <class F>
  void for_each_pixel(Context& context, F&& f) const {
    auto* scratch =
        reinterpret_cast<float*>(context.workspace(workspace_bytes(context.threads(), view_.channels)));
    for_each_plane(view_.images, context.threads(), [&](int64_t n) {
      float* row = scratch + omp_get_thread_num() * 2 * view_.channels;
      for (int64_t p = 0; p < view_.pixels(); ++p)
        f(row, row + view_.channels, n * view_.blocks * view_.plane() + p * view_.block);
    });
  }

  // Calls f(channel, where it is) for every channel of a pixel.
  template <class F>
  void for_each_channel(F&& f) const {
    for (int64_t k = 0; k < view_.blocks; ++k)
      for (int64_t c = k * view_.block; c < std::min(view_.channels, (k + 1) * view_.block); ++c)
        f(c, k * view_.plane() + c - k * view_.block);
  }
  void gather(const T* pixel, float* row) const {
    for_each_channel([=](int64_t c, int64_t at) { row[c] = pixel[at]; });
  }
  void scatter(const float* row, T* pixel) const {
    for_each_channel([=](int64_t c, int64_t at) { pixel[at] = T(row[c]); });
  }

  const Activation view_;
  const SoftmaxLoops& loops_;
};

}  // namespace

KernelEntry softmax_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
                const Layout layout = accept(offered[0]);
                return Lowering{.x = {layout},
                                .y = layout,
                                .precision = precision,
                                .keeps_y = true,
                                .workspace_bytes = workspace_bytes(omp_get_max_threads(), x[0][1])};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<SoftmaxKernel>(x[0].dtype, x[0]); }};
}

}  // namespace antichain::cpu
