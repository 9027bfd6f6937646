// Permute is a copy between two descriptions of the same numbers, which oneDNN carries out: x with y's shape
// and its own strides, and y.
#include "layers/permute.h"

#include "layers/cpu/copy_kernel.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

// Describes x in the order of y's dimensions.
Desc permuted(const Permute& op, const Shape& x, const Shape& y, DType dtype) {
  dnnl::memory::dims strides(size_t(x.rank()), 1), of_y;
  for (int i = x.rank() - 2; i >= 0; --i) strides[size_t(i)] = strides[size_t(i + 1)] * x[i + 1];
  for (const int axis : op.order) of_y.push_back(strides[size_t(axis)]);
  return checked("describe a permuted tensor", [&] {
    return Desc({y.begin(), y.end()}, type_of(dtype), of_y);
  });
}

CopyKernel copy_of(const Permute& op, const Shape& x, DType dtype) {
  const Shape y = op.infer({&x, 1}).y.shape;
  return {permuted(op, x, y, dtype), describe({.shape = y, .dtype = dtype})};
}

}  // namespace

KernelEntry permute_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            const CopyKernel kernel = copy_of(static_cast<const Permute&>(op), x[0], storage(precision));
            return Lowering{
                .x = {Layout::plain}, .precision = precision, .workspace_bytes = kernel.workspace_bytes()};
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<CopyKernel>(copy_of(static_cast<const Permute&>(op), x[0].shape, x[0].dtype));
      }};
}

}  // namespace antichain::cpu
