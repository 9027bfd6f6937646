// Add sums two tensors of one shape.
#include "layers/add.h"

#include "layers/cuda/move.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void add(Stream stream, int64_t count, const T* a, const T* b, T* y) {
  for_elements(
      stream, count, [=] ANTICHAIN_DEVICE(Index, float left, float right, float& sum) { sum = left + right; },
      read(a), read(b), write(y));
}

template <class T>
class AddKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    add(stream_of(context), f.y.elements(), f.x[0].data<T>(), f.x[1].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    for (size_t i = 0; i < b.dx.size(); ++i)
      if (b.dx[i])
        move_elements(stream_of(context), b.dy.elements(), b.dy.data<T>(), b.dx[i].data<T>(), b.into_dx(i));
  }
};

}  // namespace

KernelEntry add_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const Layout layout = layout_of(x[0]);
                return Lowering{.x = {layout, layout}, .y = layout, .precision = precision, .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<AddKernel>(x[0].dtype); }};
}

}  // namespace antichain::cuda
