// ReLU works on the elements in memory order: any layout, padding included (zero stays zero).
#include "layers/relu.h"

#include "layers/cpu/dnnl.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/for_each_range.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

template <class T>
class ReluKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    for_each_range(f.y.elements(), context.threads(), [&](int64_t begin, int64_t end) {
      elementwise_loops<T>().relu(x + begin, y + begin, end - begin);
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T *y = b.y.data<T>(), *dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    const bool adds = b.into_dx(0) == Into::accumulate;
    for_each_range(b.dy.elements(), context.threads(), [&](int64_t begin, int64_t end) {
      elementwise_loops<T>().relu_gradient(y + begin, dy + begin, dx + begin, adds, end - begin);
    });
  }
};

}  // namespace

KernelEntry relu_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
                const Layout layout = accept(offered[0]);
                return Lowering{
                    .x = {layout}, .y = layout, .precision = precision, .keeps_y = true, .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<ReluKernel>(x[0].dtype); }};
}

}  // namespace antichain::cpu
