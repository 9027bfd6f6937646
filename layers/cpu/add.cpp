// The sum of two tensors, on the bytes as they lie, in the layout of the first.
#include "layers/add.h"

#include <cstring>

#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

class AddKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    const float* a = f.x[0].data<float>();
    const float* b = f.x[1].data<float>();
    float* y = f.y.data<float>();
    const int64_t count = f.y.elements();
#pragma omp parallel for simd num_threads(context.threads()) schedule(static) if (context.threads() > 1)
    for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
  }

  void backward(Context&, const Backward& b) const override {
    for (const Tensor& dx : b.dx)
      if (dx) std::memcpy(dx.raw(), b.dy.raw(), size_t(dx.bytes()));
  }
};

}  // namespace

KernelEntry add_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout> offered) {
                const Layout layout = accept(offered[0]);
                return Lowering{.x = {layout, layout}, .y = layout};
              },
          .make = [](const Op&, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<AddKernel>();
          }};
}

}  // namespace antichain::cpu
