// Images as rows: the same bytes. Images of one pixel lie in NHWC as they do in NCHW and need no reorder.
#include "layers/flatten.h"

#include "layers/cuda/move.h"
#include "layers/cuda/operators.h"

namespace antichain::cuda {
namespace {

class FlattenKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override {
    move_elements(stream_of(context), f.y.elements(), f.x[0].data<float>(), f.y.data<float>(),
                  Into::overwrite);
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0])
      move_elements(stream_of(context), b.dy.elements(), b.dy.data<float>(), b.dx[0].data<float>(),
                    b.into_dx(0));
  }
};

}  // namespace

KernelEntry flatten_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision) {
                const bool pixel = x[0][2] == 1 && x[0][3] == 1 && offered[0] == Layout::nhwc;
                return Lowering{.x = {pixel ? Layout::nhwc : Layout::plain}, .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<FlattenKernel>();
          }};
}

}  // namespace antichain::cuda
