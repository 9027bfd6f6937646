// Rectified linear unit, element by element: any shape and layout.
#include "layers/relu.h"

#include "framework/cuda/launch.h"
#include "layers/cuda/operators.h"

namespace antichain::cuda {
namespace {

template <class T>
void relu(Stream stream, int64_t count, const T* x, T* y) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    const float value = float(x[i]);
    y[i] = T(value < 0 ? 0.0f : value);  // lets NaN through, to be seen
  });
}

template <class T>
void relu_gradient(Stream stream, int64_t count, const T* y, const T* dy, T* dx, bool adds) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    const float passed = float(y[i]) > 0 ? float(dy[i]) : 0.0f;
    dx[i] = T(adds ? float(dx[i]) + passed : passed);
  });
}

class ReluKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    relu(stream_of(context), f.y.elements(), f.x[0].data<float>(), f.y.data<float>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    relu_gradient(stream_of(context), b.dy.elements(), b.y.data<float>(), b.dy.data<float>(),
                  b.dx[0].data<float>(), b.into_dx(0) == Into::accumulate);
  }
};

}  // namespace

KernelEntry relu_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision) {
                const Layout layout = layout_of(x[0]);
                return Lowering{.x = {layout}, .y = layout, .keeps_y = true, .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<ReluKernel>();
          }};
}

}  // namespace antichain::cuda
