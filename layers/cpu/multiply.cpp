// Multiply works in memory order, in the layout of the first factor. Where the second has one number per
// channel of each image, a plane is computed by one thread from start to end, so that the sums over its
// pixels have one order.
#include "layers/multiply.h"

#include "layers/cpu/channel_scale.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/for_each_range.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

template <class T>
class MultiplyKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    multiply(context, f.x[0].data<T>(), f.x[1].data<T>(), f.y, false);
  }

  void backward(Context& context, const Backward& b) const override {
    for (size_t i = 0; i < b.dx.size(); ++i)
      if (b.dx[i])
        multiply(context, b.dy.data<T>(), b.x[1 - i].data<T>(), b.dx[i], b.into_dx(i) == Into::accumulate);
  }

 private:
  static void multiply(Context& context, const T* a, const T* b, const Tensor& to, bool adds) {
    T* y = to.data<T>();
    for_each_range(to.elements(), context.threads(), [&](int64_t begin, int64_t end) {
      elementwise_loops<T>().multiply(a + begin, b + begin, y + begin, adds, end - begin);
    });
  }
};

template <class T>
class GateKernel : public Kernel {
 public:
  explicit GateKernel(const TensorSpec& a) : scale_(a) {}

  void forward(Context& context, const Forward& f) const override {
    const T *a = f.x[0].data<T>(), *b = f.x[1].data<T>();
    T* y = f.y.data<T>();
    for_each_plane(scale_.view().planes(), context.threads(),
                   [&](int64_t plane) { scale_.forward(a, b + plane * scale_.view().block, y, plane); });
  }

  void backward(Context& context, const Backward& b) const override {
    const auto wanted = [&](size_t i) { return i < b.dx.size() && b.dx[i] ? b.dx[i].data<T>() : nullptr; };
    T *const da = wanted(0), *const db = wanted(1);
    if (!da && !db) return;
    const T* gates = b.x[1].data<T>();
    for_each_plane(scale_.view().planes(), context.threads(), [&](int64_t plane) {
      double sum[16] = {};
      const int64_t block = scale_.view().block, first = plane * block;
      scale_.backward({.x = b.x[0].data<T>(),
                       .dy = b.dy.data<T>(),
                       .dx = da,
                       .adds = b.into_dx(0) == Into::accumulate,
                       .sum = db ? sum : nullptr},
                      gates + first, plane);
      if (!db) return;
      const bool adds = b.into_dx(1) == Into::accumulate;
      for (int64_t c = 0; c < block; ++c) {  // padding is 0, and so are its sums
        const T fresh = T(float(sum[c]));
        db[first + c] = adds ? T(db[first + c] + fresh) : fresh;
      }
    });
  }

 private:
  const ChannelScale<T> scale_;
};

}  // namespace

KernelEntry multiply_entry() {
  return {
      .lower =
          [](const Op&, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
            const Layout layout = accept(offered[0]);
            return Lowering{
                .x = {layout, layout}, .y = layout, .precision = precision, .keeps_x = true, .adds_dx = true};
          },
      .make =
          [](const Op&, std::span<const TensorSpec> x, const Lowering&) {
            return x[0].shape == x[1].shape ? make_typed<MultiplyKernel>(x[0].dtype)
                                            : make_typed<GateKernel>(x[0].dtype, x[0]);
          }};
}

}  // namespace antichain::cpu
