// Gather copies runs of numbers forward. Backward, each number of x adds up those of y that are copies of it,
// in double and in their order, so the number of threads changes no bit.
#include "layers/gather.h"

#include <algorithm>

#include "layers/cpu/activation.h"
#include "layers/cpu/light_kernels.h"
#include "layers/one_layout.h"

namespace antichain::cpu {
namespace {

template <class T>
class GatherKernel : public Kernel {
 public:
  GatherKernel(const Gather& op, const Shape& x) : at_(op, x) {}

  void forward(Context& context, const Forward& f) const override {
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    for_each_plane(at_.outer, context.threads(), [&](int64_t n) {
      for (int64_t i = 0; i < at_.count; ++i)
        std::copy_n(x + (n * at_.extent + at_.table[size_t(i)]) * at_.inner, at_.inner,
                    y + (n * at_.count + i) * at_.inner);
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    const bool adds = b.into_dx(0) == Into::accumulate;
    for_each_plane(at_.outer * at_.extent, context.threads(), [&](int64_t k) {
      const T* from = dy + k / at_.extent * at_.count * at_.inner;
      const int32_t* begin = at_.places.data() + at_.starts[size_t(k % at_.extent)];
      const int32_t* end = at_.places.data() + at_.starts[size_t(k % at_.extent) + 1];
      for (int64_t c = 0; c < at_.inner; ++c) {
        double sum = 0;
        for (const int32_t* i = begin; i < end; ++i) sum += double(float(from[*i * at_.inner + c]));
        T& to = dx[k * at_.inner + c];
        const T fresh = T(float(sum));
        to = adds ? T(float(to) + float(fresh)) : fresh;
      }
    });
  }

 private:
  const GatherPlaces at_;
};

}  // namespace

KernelEntry gather_entry() {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout>,
                      Precision precision) { return in_one_layout(Layout::plain, precision); },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<GatherKernel>(x[0].dtype, static_cast<const Gather&>(op), x[0].shape);
              }};
}

}  // namespace antichain::cpu
