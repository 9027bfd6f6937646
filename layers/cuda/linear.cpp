// Linear layers are three matrix products, each planned when the kernel is made, and a pass for bias and
// ReLU.
#include "layers/linear.h"

#include <algorithm>
#include <utility>

#include "layers/cuda/convert.h"
#include "layers/cuda/epilogue.h"
#include "layers/cuda/gemm.h"
#include "layers/cuda/scratch.h"

namespace antichain::cuda {
namespace {

class LinearKernel : public Kernel {
 public:
  LinearKernel(const Linear& op, const Shape& x, Precision precision, Factors factors)
      : has_bias_(op.options.bias),
        dtype_(storage(precision)),
        in_first_(op.options.in_first),
        sizes_(op, x),
        epilogue_(op.options.bias, op.options.relu, {sizes_.rows, sizes_.out}, storage(precision)) {
    const auto [n, in, out] = sizes_;
    const auto product = [&](GemmShape shape, DType type) {
      shape.factors = dtype_;
      shape.product = type;
      return make_gemm(shape, factors);
    };
    forward_ =
        product({.m = n, .n = out, .k = in, .transpose_b = !in_first_}, widened() ? DType::f32 : dtype_);
    input_ = product({.m = n, .n = in, .k = out, .transpose_b = in_first_}, dtype_);
    GemmShape weight{.m = out, .n = in, .k = n, .transpose_a = true};
    if (in_first_) std::swap(weight.m, weight.n);
    fresh_ = product(weight, DType::f32);
    weight.adds = true;
    adding_ = product(weight, DType::f32);
  }

  int64_t workspace_bytes() const { return std::max(forward_bytes(), backward_bytes()); }

  std::vector<TensorSpec> prepared(const Shape& weight) const {
    if (dtype_ == DType::f32) return {};
    return {{.shape = weight, .dtype = dtype_}};
  }

  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    if (!prepared.empty())
      convert(stream_of(context), sizes_.in * sizes_.out, params[0].data<float>(), prepared[0].data<Bf16>());
  }

  void forward(Context& context, const Forward& f) const override {
    Scratch scratch(context, forward_bytes());
    void* product = f.y.raw();
    if (widened()) product = scratch.take<float>(f.y.elements());
    const Tensor& weight = f.prepared.empty() ? f.params[0] : f.prepared[0];
    forward_->run(context, f.x[0].raw(), weight.raw(), product,
                  scratch.take<std::byte>(forward_->workspace_bytes()));
    epilogue_.forward(context, product, widened() ? DType::f32 : dtype_, f);
  }

  void backward(Context& context, const Backward& b) const override {
    Scratch scratch(context, backward_bytes());
    const std::byte* dproduct = epilogue_.backward(context, scratch, b);
    const Gemm& weight = b.into == Into::accumulate ? *adding_ : *fresh_;
    if (!b.dw.empty() && b.dw[0]) {
      const std::byte* x = b.x[0].raw();
      run(context, scratch, weight, in_first_ ? x : dproduct, in_first_ ? dproduct : x, b.dw[0]);
    }
    if (!b.dx.empty() && b.dx[0])
      run(context, scratch, *input_, dproduct, (b.prepared.empty() ? b.params[0] : b.prepared[0]).raw(),
          b.dx[0]);
  }

 private:
  // Returns whether the forward product is stored in fewer bits only after the bias is added.
  bool widened() const { return has_bias_ && dtype_ == DType::bf16; }
  int64_t forward_bytes() const {
    return (widened() ? Scratch::rounded(sizes_.rows * sizes_.out * int64_t(sizeof(float))) : 0) +
           Scratch::rounded(forward_->workspace_bytes());
  }
  int64_t backward_bytes() const {
    const int64_t products =
        std::max({input_->workspace_bytes(), fresh_->workspace_bytes(), adding_->workspace_bytes()});
    return epilogue_.backward_bytes() + Scratch::rounded(products);
  }
  // The scratch is passed by value: the next product may use the same bytes.
  static void run(Context& context, Scratch scratch, const Gemm& gemm, const std::byte* a, const std::byte* b,
                  const Tensor& c) {
    gemm.run(context, a, b, c.raw(), scratch.take<std::byte>(gemm.workspace_bytes()));
  }

  const bool has_bias_;
  const DType dtype_;  // of x, y and the weights that are multiplied
  const bool in_first_;
  const LinearSizes sizes_;
  const Epilogue epilogue_;
  std::unique_ptr<const Gemm> forward_, input_, fresh_, adding_;
};

}  // namespace

KernelEntry linear_entry(Factors factors) {
  return {
      .lower =
          [factors](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            const auto& linear = dynamic_cast<const Linear&>(op);
            const LinearKernel kernel(linear, x[0], precision, factors);
            return Lowering{.x = {Layout::plain},
                            .params = std::vector<Layout>(linear.options.bias ? 2 : 1, Layout::plain),
                            .precision = precision,
                            .prepared = kernel.prepared(linear.infer(x).params[0].shape),
                            .prepared_rounded = true,
                            .keeps_x = true,
                            .keeps_y = linear.options.relu,
                            .workspace_bytes = kernel.workspace_bytes()};
          },
      .make = [factors](const Op& op, std::span<const TensorSpec> x,
                        const Lowering& lowering) -> std::unique_ptr<Kernel> {
        return std::make_unique<LinearKernel>(dynamic_cast<const Linear&>(op), x[0].shape, lowering.precision,
                                              factors);
      },
      .fuses = [](const Op&) { return true; }};
}

}  // namespace antichain::cuda
