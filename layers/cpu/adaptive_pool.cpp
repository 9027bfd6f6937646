// Adaptive average pooling processes a vector of one channel block at a time. Sums run over the pixels in
// order, in double precision; windows that overlap add their gradients in row-major order.
#include "layers/adaptive_pool.h"

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/plane_sum.h"

namespace antichain::cpu {
namespace {

template <class T>
class AdaptivePoolKernel : public Kernel {
 public:
  AdaptivePoolKernel(const AdaptiveAveragePool& op, const TensorSpec& x) : out_(op.out), x_(x) {}

  void forward(Context& context, const Forward& f) const override {
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const T* x = f.x[0].data<T>() + plane * x_.plane();
        T* y = f.y.data<T>() + plane * y_plane();
        for_each_window([&](const AdaptiveWindow& rows, const AdaptiveWindow& columns) {
          double sum[B] = {};
          for (int64_t r = rows.begin; r < rows.end; ++r)
            for (int64_t q = columns.begin; q < columns.end; ++q)
              for (int c = 0; c < B; ++c) sum[c] += float(x[(r * x_.width + q) * B + c]);
          for (int c = 0; c < B; ++c) *y++ = T(float(sum[c] / double(rows.size() * columns.size())));
        });
      });
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const PlaneSum<T> summed(context, x_.plane());
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const T* dy = b.dy.data<T>() + plane * y_plane();
        summed(b.dx[0].data<T>() + plane * x_.plane(), [&](float* dx) {
          for_each_window([&](const AdaptiveWindow& rows, const AdaptiveWindow& columns) {
            const float share = 1.0f / float(rows.size() * columns.size());
            for (int64_t r = rows.begin; r < rows.end; ++r)
              for (int64_t q = columns.begin; q < columns.end; ++q)
                for (int c = 0; c < B; ++c) dx[(r * x_.width + q) * B + c] += dy[c] * share;
            dy += B;
          });
        });
      });
    });
  }

 private:
  // Calls f(rows, columns) for each window in the order of y's pixels.
  template <class F>
  void for_each_window(F&& f) const {
    for (int64_t r = 0; r < out_.h; ++r)
      for (int64_t q = 0; q < out_.w; ++q)
        f(AdaptiveWindow(r, x_.height, out_.h), AdaptiveWindow(q, x_.width, out_.w));
  }

  int64_t y_plane() const { return out_.h * out_.w * x_.block; }

  const Extent out_;
  const Activation x_;
};

}  // namespace

KernelEntry adaptive_average_pool_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
                const Layout layout = accept(offered[0]);
                return Lowering{.x = {layout},
                                .y = layout,
                                .precision = precision,
                                .workspace_bytes = plane_sum_bytes(x[0], layout, precision)};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<AdaptivePoolKernel>(x[0].dtype, static_cast<const AdaptiveAveragePool&>(op),
                                                      x[0]);
              }};
}

}  // namespace antichain::cpu
