// Rectified linear unit on the bytes as they lie: any layout, padding included (zero stays zero).
#include "layers/relu.h"

#include <bit>

#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

class ReluKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    const float* x = f.x[0].data<float>();
    float* y = f.y.data<float>();
    const int64_t count = f.y.elements();
#pragma omp parallel for simd num_threads(context.threads()) schedule(static) if (context.threads() > 1)
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0.0f : x[i];  // lets NaN through, to be seen
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const float* y = b.y.data<float>();
    const float* dy = b.dy.data<float>();
    float* dx = b.dx[0].data<float>();
    const int64_t count = b.dy.elements();
#pragma omp parallel for simd num_threads(context.threads()) schedule(static) if (context.threads() > 1)
    for (int64_t i = 0; i < count; ++i) {
      // A mask, because a condition on signs that are as good as random would be a branch, mispredicted half the time.
      const uint32_t mask = -uint32_t(y[i] > 0);
      dx[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(dy[i]) & mask);
    }
  }
};

}  // namespace

KernelEntry relu_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout> offered) {
                const Layout layout = accept(offered[0]);
                return Lowering{.x = {layout}, .y = layout, .keeps_y = true};
              },
          .make = [](const Op&, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<ReluKernel>();
          }};
}

}  // namespace antichain::cpu
