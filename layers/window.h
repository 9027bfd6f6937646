// The arithmetic of a window that slides over an image: what convolutions and pools have in common.
#pragma once

#include <cstdint>

namespace antichain {

// A pair of extents, height and width; one number means a square.
struct Extent {
  int h, w;
  constexpr Extent(int both) : h(both), w(both) {}
  constexpr Extent(int height, int width) : h(height), w(width) {}
  bool operator==(const Extent&) const = default;
};

// How many windows fit along one side of `in` pixels with `pad` zeros at either end. With `ceil_mode` a last
// window may hang over the far end, if it starts inside the image or its near padding (PyTorch's rule).
// Less than 1 when none fits.
constexpr int64_t windows(int64_t in, int kernel, int stride, int pad, bool ceil_mode = false) {
  const int64_t slack = in + 2 * pad - kernel;
  if (slack < 0) return 0;
  int64_t count = (slack + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= in + pad) --count;
  return count;
}

}  // namespace antichain
