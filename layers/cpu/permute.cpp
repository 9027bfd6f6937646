// Permute is a copy between two descriptions of the same numbers, which oneDNN carries out: x with y's shape
// and its own strides, and y.
#include "layers/permute.h"

#include <algorithm>

#include "layers/cpu/adapted.h"
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

class PermuteKernel : public Kernel {
 public:
  PermuteKernel(const Permute& op, const Shape& x, DType dtype) {
    const Shape y = op.infer({&x, 1}).y.shape;
    const Desc here = permuted(op, x, y, dtype), there = describe({.shape = y, .dtype = dtype});
    forward_ = Reordered(here, there);
    backward_ = Reordered(there, here);
  }

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

KernelEntry permute_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            const PermuteKernel kernel(static_cast<const Permute&>(op), x[0], storage(precision));
            return Lowering{
                .x = {Layout::plain}, .precision = precision, .workspace_bytes = kernel.workspace_bytes()};
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<PermuteKernel>(static_cast<const Permute&>(op), x[0].shape, x[0].dtype);
      }};
}

}  // namespace antichain::cpu
