// Reshape leaves the bytes as they are, and so does flatten, which is a reshape. Images of one pixel are the
// same in NHWC as in NCHW and need no reorder.
#include "layers/reshape.h"

#include "layers/cuda/move.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
class ReshapeKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    move_elements(stream_of(context), f.y.elements(), f.x[0].data<T>(), f.y.data<T>(), Into::overwrite);
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0])
      move_elements(stream_of(context), b.dy.elements(), b.dy.data<T>(), b.dx[0].data<T>(), b.into_dx(0));
  }
};

}  // namespace

KernelEntry reshape_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
                const bool pixel = offered[0] == Layout::nhwc && x[0][2] == 1 && x[0][3] == 1;
                return Lowering{
                    .x = {pixel ? Layout::nhwc : Layout::plain}, .precision = precision, .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<ReshapeKernel>(x[0].dtype); }};
}

}  // namespace antichain::cuda
