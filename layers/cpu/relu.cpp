// Rectified linear unit on the bytes as they lie: any layout, padding included (zero stays zero).
#include "layers/relu.h"

#include "layers/cpu/dnnl.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/for_each_range.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

class ReluKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    const float* x = f.x[0].data<float>();
    float* y = f.y.data<float>();
    for_each_range(f.y.elements(), context.threads(), [&](int64_t begin, int64_t end) {
      elementwise_loops().relu(x + begin, y + begin, end - begin);
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const float *y = b.y.data<float>(), *dy = b.dy.data<float>();
    float* dx = b.dx[0].data<float>();
    const bool adds = b.into_dx(0) == Into::accumulate;
    for_each_range(b.dy.elements(), context.threads(), [&](int64_t begin, int64_t end) {
      elementwise_loops().relu_gradient(y + begin, dy + begin, dx + begin, adds, end - begin);
    });
  }
};

}  // namespace

KernelEntry relu_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout> offered) {
                const Layout layout = accept(offered[0]);
                return Lowering{.x = {layout}, .y = layout, .keeps_y = true, .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<ReluKernel>();
          }};
}

}  // namespace antichain::cpu
