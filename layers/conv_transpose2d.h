// ConvTranspose2d is a transposed convolution, torch.nn.ConvTranspose2d: it computes what a convolution has
// as its input gradient. Zeiler, Krishnan, Taylor & Fergus, "Deconvolutional
// Networks", CVPR 2010.
//
//   x  N x C x H x W      weight  C x K/groups x kernel.h x kernel.w      bias  K (optional)
//   y  N x K x H' x W'    H' = (H − 1) stride.h − 2 pad.h + reach.h + output_pad.h; W' likewise. A kernel
//                         reaches over (kernel − 1) dilation + 1 pixels.
#pragma once

#include <optional>

#include "layers/conv2d.h"

namespace antichain {

struct ConvTranspose2dOptions {
  int64_t out = 0;  // K
  Extent kernel = 3;
  Extent stride = 1;
  Extent pad = 0;         // rows and columns that are left out on each side of y
  Extent output_pad = 0;  // rows and columns more at y's ends: less than the stride
  Extent dilation = 1;
  int groups = 1;
  bool bias = true;
  bool line =
      false;  // the weight of a kernel of one row is C x K/groups x kernel.w: torch.nn.ConvTranspose1d
  // The default of both is U(±1 / sqrt(K/groups · kernel.h · kernel.w)), as PyTorch's ConvTranspose2d.
  std::optional<Initialiser> weight_init = std::nullopt, bias_init = std::nullopt;
};
template <class Visit>
void fields(ConvTranspose2dOptions& o, Visit&& visit) {
  visit("out", o.out);
  visit("kernel", o.kernel);
  visit("stride", o.stride);
  visit("pad", o.pad);
  visit("output_pad", o.output_pad);
  visit("dilation", o.dilation);
  visit("groups", o.groups);
  visit("bias", o.bias);
  visit("weight_init", o.weight_init);
  visit("bias_init", o.bias_init);
  visit("line", o.line);
}

class ConvTranspose2d : public Op {
 public:
  explicit ConvTranspose2d(ConvTranspose2dOptions options);  // Error when an option makes no sense
  std::string_view type() const override { return "conv_transpose2d"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;
  // Returns the convolution from y to x, without bias. It has the same weights.
  Conv2d convolution(const Shape& x) const;

  const ConvTranspose2dOptions options;
};

NodeId conv_transpose2d(Graph&, std::string name, NodeId x, ConvTranspose2dOptions);

}  // namespace antichain
