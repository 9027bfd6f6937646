// Add sums two tensors element by element in memory order, in the layout of the first.
#include "layers/add.h"

#include <algorithm>

#include "layers/cpu/dnnl.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/for_each_range.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

template <class T>
class AddKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    const T *a = f.x[0].data<T>(), *b = f.x[1].data<T>();
    T* y = f.y.data<T>();
    for_each_range(f.y.elements(), context.threads(), [&](int64_t begin, int64_t end) {
      elementwise_loops<T>().add(a + begin, b + begin, y + begin, end - begin);
    });
  }

  void backward(Context& context, const Backward& b) const override {
    const T* dy = b.dy.data<T>();
    for (size_t input = 0; input < b.dx.size(); ++input) {
      if (!b.dx[input]) continue;
      T* dx = b.dx[input].data<T>();
      const bool adds = b.into_dx(input) == Into::accumulate;
      for_each_range(b.dy.elements(), context.threads(), [&](int64_t begin, int64_t end) {
        if (adds)
          elementwise_loops<T>().accumulate(dy + begin, dx + begin, end - begin);
        else
          std::copy(dy + begin, dy + end, dx + begin);
      });
    }
  }
};

}  // namespace

KernelEntry add_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
                const Layout layout = accept(offered[0]);
                return Lowering{.x = {layout, layout}, .y = layout, .precision = precision, .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<AddKernel>(x[0].dtype); }};
}

}  // namespace antichain::cpu
