// ReLU works element by element, on any shape and layout.
#include "layers/relu.h"

#include "framework/cuda/passes.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void relu(Stream stream, int64_t count, const T* x, T* y) {
  for_elements(
      stream, count,
      [=] ANTICHAIN_DEVICE(Index, float before, float& after) {
        after = before < 0 ? 0.0f : before;  // lets NaN through, to be seen
      },
      read(x), write(y));
}

template <class T>
void relu_gradient(Stream stream, int64_t count, const T* y, const T* dy, T* dx, bool adds) {
  for_elements(
      stream, count,
      [=] ANTICHAIN_DEVICE(Index, float after, float gradient, float& sum) {
        const float passed = after > 0 ? gradient : 0.0f;
        sum = adds ? sum + passed : passed;
      },
      read(y), read(dy), into(dx, adds));
}

template <class T>
class ReluKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    relu(stream_of(context), f.y.elements(), f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    relu_gradient(stream_of(context), b.dy.elements(), b.y.data<T>(), b.dy.data<T>(), b.dx[0].data<T>(),
                  b.into_dx(0) == Into::accumulate);
  }
};

}  // namespace

KernelEntry relu_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const Layout layout = layout_of(x[0]);
                return Lowering{
                    .x = {layout}, .y = layout, .precision = precision, .keeps_y = true, .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<ReluKernel>(x[0].dtype); }};
}

}  // namespace antichain::cuda
