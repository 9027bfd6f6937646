// Reorder uses oneDNN: forward from the producer's layout and type to the consumer's, backward from the
// consumer's to the producer's.
#include "framework/reorder.h"

#include "layers/cpu/backend.h"
#include "layers/cpu/copy_kernel.h"

namespace antichain::cpu {
namespace {

CopyKernel copy_of(const Reorder& op, const Shape& x, Layout from) {
  return {describe(x, from, op.from_type), describe(x, op.to, op.to_type)};
}

}  // namespace

KernelEntry reorder_entry() {
  return {[](const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
            const auto& reorder = dynamic_cast<const Reorder&>(op);
            Lowering l;
            l.x = {offered[0]};
            l.y = reorder.to;
            l.precision = precision;
            l.workspace_bytes = copy_of(reorder, x[0], offered[0]).workspace_bytes();
            return l;
          },
          [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return std::make_unique<CopyKernel>(
                copy_of(dynamic_cast<const Reorder&>(op), x[0].shape, x[0].layout));
          }};
}

}  // namespace antichain::cpu
