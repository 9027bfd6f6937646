// Reshape leaves the bytes as they are, and so does flatten, which is a reshape. A blocked image of one pixel
// whose channels fill their blocks has the same bytes as a plain one, so it needs no reorder.
#include "layers/reshape.h"

#include <cstring>

#include "layers/cpu/light_kernels.h"
#include "layers/dense_view.h"

namespace antichain::cpu {
namespace {

class ReshapeKernel : public Kernel {
 public:
  void forward(Context&, const Forward& f) const override {
    std::memcpy(f.y.raw(), f.x[0].raw(), size_t(f.y.bytes()));
  }
  void backward(Context&, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) std::memcpy(b.dx[0].raw(), b.dy.raw(), size_t(b.dy.bytes()));
  }
};

bool lies_as_plain(const Shape& x, Layout layout) {
  if (layout == Layout::plain) return true;
  const int64_t block = DenseView({.shape = x, .layout = layout}).block;
  return block > 1 && x[2] == 1 && x[3] == 1 && x[1] % block == 0;
}

}  // namespace

KernelEntry reshape_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
                return Lowering{.x = {lies_as_plain(x[0], offered[0]) ? offered[0] : Layout::plain},
                                .precision = precision};
              },
          .make = [](const Op&, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<ReshapeKernel>();
          }};
}

}  // namespace antichain::cpu
