// A Pool takes the maximum or the mean of windows that slide over an image, with PyTorch's rules for padding
// and ceil_mode.
//
//   x  N x C x H x W      y  N x C x H' x W', see windows() in layers/window.h
//
// Max pooling ignores padding; among equal values in a window, the first in row-major order gets the
// gradient. Average pooling divides by the window's area cut off at the padded image (count_include_pad), or
// by the number of its real pixels.
#pragma once

#include "framework/graph.h"
#include "layers/window.h"

namespace antichain {

struct PoolOptions {
  Extent kernel = 2;
  Extent stride = 2;
  Extent pad = 0;  // at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;  // of average pooling
};
template <class Visit>
void fields(PoolOptions& o, Visit&& visit) {
  visit("kernel", o.kernel);
  visit("stride", o.stride);
  visit("pad", o.pad);
  visit("ceil_mode", o.ceil_mode);
  visit("count_include_pad", o.count_include_pad);
}

class Pool : public Op {
 public:
  enum class Kind { max, average };
  Pool(Kind kind, PoolOptions options);
  std::string_view type() const override { return kind == Kind::max ? "max_pool" : "average_pool"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const Kind kind;
  const PoolOptions options;
};

NodeId max_pool(Graph&, std::string name, NodeId x, PoolOptions = {});
NodeId average_pool(Graph&, std::string name, NodeId x, PoolOptions = {});

}  // namespace antichain
