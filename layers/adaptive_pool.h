// AdaptiveAveragePool averages over windows to a given number of pixels, whatever the image's size, as
// PyTorch's AdaptiveAvgPool2d.
//
//   x  N x C x H x W      y  N x C x out.h x out.w
//   y[r][c] = mean of x[r H / out.h … (r + 1) H / out.h − 1][likewise], from rounded down to rounded up
//
// Windows overlap where out does not divide the image; pixels are repeated where the image is smaller.
#pragma once

#include "framework/graph.h"
#include "layers/window.h"

namespace antichain {

// The window of output pixel i along one side is the input's pixels begin … end − 1.
struct AdaptiveWindow {
  int64_t begin, end;
  constexpr AdaptiveWindow(int64_t i, int64_t in, int64_t out)
      : begin(i * in / out), end(((i + 1) * in + out - 1) / out) {}
  constexpr int64_t size() const { return end - begin; }
};

struct AdaptiveAveragePoolOptions {
  int h = 0, w = 0;  // of y
};
template <class Visit>
void fields(AdaptiveAveragePoolOptions& o, Visit&& visit) {
  visit("h", o.h);
  visit("w", o.w);
}

class AdaptiveAveragePool : public Op {
 public:
  explicit AdaptiveAveragePool(Extent out);  // Error unless positive
  std::string_view type() const override { return "adaptive_average_pool"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const Extent out;
};

NodeId adaptive_average_pool(Graph&, std::string name, NodeId x, Extent out);

}  // namespace antichain
