// Reorder uses oneDNN: forward from the producer's layout and type to the consumer's, backward from the
// consumer's to the producer's.
#include "framework/reorder.h"

#include <algorithm>

#include "layers/cpu/adapted.h"
#include "layers/cpu/backend.h"

namespace antichain::cpu {
namespace {

class ReorderKernel : public Kernel {
 public:
  ReorderKernel(const Reorder& op, const Shape& x, Layout from)
      : forward_(describe(x, from, op.from_type), describe(x, op.to, op.to_type)),
        backward_(describe(x, op.to, op.to_type), describe(x, from, op.from_type)) {}

  int64_t workspace_bytes() const { return std::max(forward_.scratch_bytes(), backward_.scratch_bytes()); }

  void forward(Context& context, const Forward& f) const override {
    forward_.run(context, f.x[0].raw(), f.y.raw());
  }

  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) backward_.run(context, b.dy.raw(), b.dx[0].raw());
  }

 private:
  Reordered forward_, backward_;
};

}  // namespace

KernelEntry reorder_entry() {
  return {[](const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
            const auto& reorder = dynamic_cast<const Reorder&>(op);
            Lowering l;
            l.x = {offered[0]};
            l.y = reorder.to;
            l.precision = precision;
            l.workspace_bytes = ReorderKernel(reorder, x[0], offered[0]).workspace_bytes();
            return l;
          },
          [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return std::make_unique<ReorderKernel>(dynamic_cast<const Reorder&>(op), x[0].shape, x[0].layout);
          }};
}

}  // namespace antichain::cpu
