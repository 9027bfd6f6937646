// A transposed convolution is carried out by the passes of the convolution from its output to its input:
//
//   y  = the convolution's input gradient, of x
//   dx = the convolution of dy
//   dw = the convolution's weight gradient, of dy and x
//
// Each engine lends its kernel of the convolution, and adds the bias and its gradient.
#pragma once

#include <memory>
#include <utility>

#include "framework/backend.h"
#include "layers/conv_transpose2d.h"

namespace antichain {

// Returns what an engine's convolution lowers to, with input and output exchanged.
inline Lowering transposed_lowering(const KernelEntry& conv2d, const ConvTranspose2d& op, const Shape& x,
                                    Precision precision) {
  const Shape y = op.infer({&x, 1}).y.shape;
  const Layout offered = Layout::plain;
  Lowering l = conv2d.lower(op.convolution(x), {&y, 1}, {&offered, 1}, precision);
  std::swap(l.x[0], l.y);
  if (op.options.bias) l.params.push_back(Layout::plain);
  l.keeps_x = true;
  return l;
}

class Transposed {
 public:
  Transposed(const KernelEntry& conv2d, const ConvTranspose2d& op, const TensorSpec& x, const Lowering& l)
      : op_(op.convolution(x.shape)) {
    const TensorSpec y{op.infer({&x.shape, 1}).y.shape, x.dtype, l.y};
    Lowering of_convolution = l;
    std::swap(of_convolution.x[0], of_convolution.y);
    of_convolution.params.resize(1);
    kernel_ = conv2d.make(op_, {&y, 1}, of_convolution);
  }

  void prepare(Context& context, std::span<const Tensor> params, std::span<const Tensor> prepared) const {
    kernel_->prepare(context, params.first(1), prepared);
  }

  void forward(Context& context, const Forward& f) const {
    kernel_->backward(
        context,
        {.params = f.params.first(1), .prepared = f.prepared, .dy = f.x[0], .dx = std::span(&f.y, 1)});
  }

  void backward(Context& context, const Backward& b) const {
    const std::span dy(&b.dy, 1);
    if (!b.dw.empty() && b.dw[0])
      kernel_->backward(context, {.x = dy,
                                  .params = b.params.first(1),
                                  .prepared = b.prepared,
                                  .dy = b.x[0],
                                  .dw = b.dw.first(1),
                                  .into = b.into});
    if (!b.dx.empty() && b.dx[0])
      kernel_->forward(context, {.x = dy, .params = b.params.first(1), .prepared = b.prepared, .y = b.dx[0]});
  }

 private:
  const Conv2d op_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace antichain
