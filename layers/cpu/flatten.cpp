// Flatten turns images into rows of the same bytes. A blocked image of one pixel whose channels fill their
// blocks has the same bytes as a plain one, so it needs no reorder.
#include "layers/flatten.h"

#include <cstring>

#include "layers/cpu/activation.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

class FlattenKernel : public Kernel {
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
  if (layout != Layout::nChw8c && layout != Layout::nChw16c) return false;
  return x[2] == 1 && x[3] == 1 && x[1] % Activation::block_of(layout) == 0;
}

}  // namespace

KernelEntry flatten_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
                return Lowering{.x = {lies_as_plain(x[0], offered[0]) ? offered[0] : Layout::plain},
                                .precision = precision};
              },
          .make = [](const Op&, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<FlattenKernel>();
          }};
}

}  // namespace antichain::cpu
