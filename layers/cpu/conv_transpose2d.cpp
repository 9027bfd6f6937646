// Transposed convolutions take the passes of convolutions (layers/transposed.h). In bf16 the bias is added to
// a result that has been rounded, and the sum is rounded again.
#include "layers/conv_transpose2d.h"

#include <algorithm>

#include "layers/cpu/activation.h"
#include "layers/cpu/backend.h"
#include "layers/cpu/sum_pixels.h"
#include "layers/transposed.h"

namespace antichain::cpu {
namespace {

// Adds a number per channel to the channels that the tensor has; its padding stays 0.
template <class T>
void add_bias(const Activation& view, const float* bias, int threads, T* y) {
  with_block(view.block, [&]<int B>() {
    for_each_plane(view.planes(), threads, [&](int64_t plane) {
      const int64_t first = plane % view.blocks * B;
      float shift[B] = {};
      std::copy_n(bias + first, std::min<int64_t>(B, view.channels - first), shift);
      T* at = y + plane * view.plane();
      for (int64_t p = 0; p < view.pixels(); ++p)
        for (int c = 0; c < B; ++c) at[p * B + c] = T(float(at[p * B + c]) + shift[c]);
    });
  });
}

class ConvTranspose2dKernel : public Kernel {
 public:
  ConvTranspose2dKernel(const ConvTranspose2d& op, const TensorSpec& x, const Lowering& l)
      : has_bias_(op.options.bias), transposed_(conv2d_entry(), op, x, l) {}

  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    transposed_.prepare(context, params, prepared);
  }

  void forward(Context& context, const Forward& f) const override {
    transposed_.forward(context, f);
    if (!has_bias_) return;
    with_type(f.y.dtype(), [&]<class T>() {
      add_bias(Activation(f.y.spec()), f.params[1].data<float>(), context.threads(), f.y.data<T>());
    });
  }

  void backward(Context& context, const Backward& b) const override {
    transposed_.backward(context, b);
    if (b.dw.size() < 2 || !b.dw[1]) return;
    with_type(b.dy.dtype(), [&]<class T>() {
      sum_pixels(Activation(b.dy.spec()), b.dy.data<T>(), context.threads(), b.dw[1].data<float>(), b.into);
    });
  }

 private:
  const bool has_bias_;
  const Transposed transposed_;
};

}  // namespace

KernelEntry conv_transpose2d_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
            return transposed_lowering(conv2d_entry(), static_cast<const ConvTranspose2d&>(op), x[0],
                                       precision);
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering& l) -> std::unique_ptr<Kernel> {
        return std::make_unique<ConvTranspose2dKernel>(static_cast<const ConvTranspose2d&>(op), x[0], l);
      }};
}

}  // namespace antichain::cpu
