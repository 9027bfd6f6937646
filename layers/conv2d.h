// Conv2d is a two-dimensional convolution (cross-correlation, as every framework has it), with groups, bias
// and dilation.
//
//   x  N x C x H x W      weight  K x C/groups x kernel.h x kernel.w      bias  K (optional)
//   y  N x K x H' x W'    H' = (H + pad.before.h + pad.after.h − reach.h) / stride.h + 1, rounded down;
//                         W' likewise. A kernel reaches over (kernel − 1) dilation + 1 pixels.
//
// With `matrix`, the weight is K x C. So a 1 x 1 convolution is torch.nn.Linear over the channels of every
// pixel, which torchvision's ConvNeXt has. With `line`, the weight of a kernel of one row is K x C/groups x
// kernel.w: torch.nn.Conv1d.
//
// An engine may fuse it with a ReLU behind it (framework/fuse.h).
#pragma once

#include <optional>

#include "framework/graph.h"
#include "layers/window.h"

namespace antichain {

struct Conv2dOptions {
  int64_t out = 0;  // K, the number of filters
  Extent kernel = 3;
  Extent stride = 1;
  Padding pad = 0;
  Extent dilation = 1;  // the distance of two taps of the kernel
  int groups = 1;
  bool bias = true;
  // The default of both is U(±1 / sqrt(fan_in)), as PyTorch's Conv2d.
  std::optional<Initialiser> weight_init = std::nullopt, bias_init = std::nullopt;
  bool matrix = false;  // only of 1 x 1 kernels without groups
  bool line = false;    // only of kernels of one row
  bool relu = false;    // fused
};
template <class Visit>
void fields(Conv2dOptions& o, Visit&& visit) {
  visit("out", o.out);
  visit("kernel", o.kernel);
  visit("stride", o.stride);
  visit("pad", o.pad);
  visit("dilation", o.dilation);
  visit("groups", o.groups);
  visit("bias", o.bias);
  visit("weight_init", o.weight_init);
  visit("bias_init", o.bias_init);
  visit("matrix", o.matrix);
  visit("line", o.line);
}

class Conv2d : public Op {
 public:
  explicit Conv2d(Conv2dOptions options);  // Error when an option makes no sense
  std::string_view type() const override { return "conv2d"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;
  std::shared_ptr<const Op> then(const Op& next, int input) const override;

  // Returns the shape of the filters for an input, K x C/groups x kernel.h x kernel.w even with `matrix` or
  // `line`.
  Shape filters(const Shape& x) const;

  const Conv2dOptions options;
};

// Returns the shape of filters of one row without that axis.
inline Shape in_line(const Shape& filters) { return {filters[0], filters[1], filters[3]}; }

NodeId conv2d(Graph&, std::string name, NodeId x, Conv2dOptions);

}  // namespace antichain
