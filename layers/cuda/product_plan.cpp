// Plans the passes of a convolution with kernels of one pixel and a stride of one: they are matrix products
// where images are in NHWC.
#include "framework/error.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/gemm.h"

namespace antichain::cuda {
namespace {

// x is pixels x C, weights are K x C, y is pixels x K.
GemmShape shape_of(const Convolution& c, Pass pass) {
  const int64_t pixels = c.y.elements() / c.y[1], channels = c.x[1], filters = c.y[1];
  switch (pass) {
    case Pass::forward:  // x · weightsᵀ
      return {.m = pixels,
              .n = filters,
              .k = channels,
              .transpose_b = true,
              .factors = c.dtype,
              .product = c.dtype};
    case Pass::input_gradient:  // dy · weights
      return {.m = pixels, .n = channels, .k = filters, .factors = c.dtype, .product = c.dtype};
    case Pass::weight_gradient:
      break;
  }
  return {.m = filters, .n = channels, .k = pixels, .transpose_a = true, .factors = c.dtype};  // dyᵀ · x
}

class ProductPlan : public ConvolutionPlan {
 public:
  ProductPlan(const Convolution& c, Pass pass, Factors factors)
      : pass_(pass), product_(make_gemm(shape_of(c, pass), factors)) {}

  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }

  void run(Context& context, const void* x, const void* weight, const void* y,
           std::byte* workspace) const override {
    const auto into = [](const void* result) { return const_cast<void*>(result); };
    if (pass_ == Pass::forward) product_->run(context, x, weight, into(y), workspace);
    if (pass_ == Pass::input_gradient) product_->run(context, y, weight, into(x), workspace);
    if (pass_ == Pass::weight_gradient) product_->run(context, y, x, into(weight), workspace);
  }

 private:
  const Pass pass_;
  const std::unique_ptr<const Gemm> product_;
};

}  // namespace

bool is_product(const Convolution& c) {
  return c.weight[2] == 1 && c.weight[3] == 1 && c.groups == 1 && c.stride == Extent(1) &&
         c.pad == Padding(0);
}

std::shared_ptr<const ConvolutionPlan> plan_product(const Convolution& c, Pass pass, Factors factors) {
  ANTICHAIN_CHECK(is_product(c), "only kernels of one pixel are matrix products");
  return std::make_shared<ProductPlan>(c, pass, factors);
}

}  // namespace antichain::cuda
