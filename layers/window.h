// Computes with windows that slide over an image; convolutions and pools share this.
#pragma once

#include <cstdint>

namespace antichain {

// An Extent is a pair, height and width; one number means a square.
struct Extent {
  int h, w;
  constexpr Extent(int both) : h(both), w(both) {}
  constexpr Extent(int height, int width) : h(height), w(width) {}
  bool operator==(const Extent&) const = default;
};

// A Padding is the zeros that surround an image: `before` its first row and column, and `after` its last
// ones. One number or one Extent means the same on both sides.
struct Padding {
  Extent before, after;
  constexpr Padding(int all) : before(all), after(all) {}
  constexpr Padding(int height, int width) : before(height, width), after(height, width) {}
  constexpr Padding(Extent both) : before(both), after(both) {}
  constexpr Padding(Extent first, Extent last) : before(first), after(last) {}
  bool operator==(const Padding&) const = default;
};

// Returns how many pixels lie between the first and the last tap of a kernel, both included.
constexpr int reach(int kernel, int dilation) { return (kernel - 1) * dilation + 1; }
constexpr Extent reach(Extent kernel, Extent dilation) {
  return {reach(kernel.h, dilation.h), reach(kernel.w, dilation.w)};
}

// Returns how many windows fit along one side of `in` pixels with `pad` zeros at either end. With `ceil_mode`
// a last window may reach beyond the far end, if it starts inside the image or its near padding (PyTorch's
// rule). The result is less than 1 when none fits.
constexpr int64_t windows(int64_t in, int kernel, int stride, int pad, bool ceil_mode = false) {
  const int64_t slack = in + 2 * pad - kernel;
  if (slack < 0) return 0;
  int64_t count = (slack + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= in + pad) --count;
  return count;
}

}  // namespace antichain
