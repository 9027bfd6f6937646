// Transposed convolutions take the planned passes of convolutions (layers/transposed.h). In bf16 the bias is
// added to a result that has been rounded, and the sum is rounded again.
#include "layers/conv_transpose2d.h"

#include <algorithm>

#include "layers/cuda/epilogue.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/transposed.h"

namespace antichain::cuda {
namespace {

Epilogue bias_of(const ConvTranspose2d& op, const Shape& x, DType dtype) {
  return Epilogue(op.options.bias, false, op.infer({&x, 1}).y.shape, dtype);
}

class ConvTranspose2dKernel : public Kernel {
 public:
  ConvTranspose2dKernel(const ConvTranspose2d& op, const TensorSpec& x, const Lowering& l, Factors factors)
      : dtype_(x.dtype), bias_(bias_of(op, x.shape, x.dtype)), transposed_(conv2d_entry(factors), op, x, l) {}

  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    transposed_.prepare(context, params, prepared);
  }

  void forward(Context& context, const Forward& f) const override {
    transposed_.forward(context, f);
    bias_.forward(context, f.y.raw(), dtype_, f);
  }

  void backward(Context& context, const Backward& b) const override {
    transposed_.backward(context, b);
    Scratch scratch(context, bias_.backward_bytes());
    bias_.backward(context, scratch, b);
  }

 private:
  const DType dtype_;
  const Epilogue bias_;
  const Transposed transposed_;
};

}  // namespace

KernelEntry conv_transpose2d_entry(Factors factors) {
  return {
      .lower =
          [factors](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            const auto& of = static_cast<const ConvTranspose2d&>(op);
            Lowering l = transposed_lowering(conv2d_entry(factors), of, x[0], precision);
            l.workspace_bytes =
                std::max(l.workspace_bytes, bias_of(of, x[0], storage(precision)).backward_bytes());
            return l;
          },
      .make = [factors](const Op& op, std::span<const TensorSpec> x,
                        const Lowering& l) -> std::unique_ptr<Kernel> {
        return std::make_unique<ConvTranspose2dKernel>(static_cast<const ConvTranspose2d&>(op), x[0], l,
                                                       factors);
      }};
}

}  // namespace antichain::cuda
