// Describes along one axis which source pixels make up each pixel of a result, when a kernel slides over an
// image or when its gradient flows back.
//
// Forward, output o reads the pixels o · stride − pad + r under the taps r of the kernel. Backward, input i
// reads those outputs p for which p · stride − pad + r = i: only taps r ≡ i + pad (modulo stride) have one.
// So there are `stride` classes of inputs, each with every stride-th tap, and each class is again a kernel
// that slides over the outputs, one pixel at a time. One description serves both directions.
#pragma once

#include <cstdint>

#include "layers/conv2d.h"

namespace antichain::cpu {

// Taps are those of `count` results: first, first + step, … The k-th result reads `taps` pixels of the source
// from start + k · stride on, of which those outside the source are zero, and multiplies them by the weights
// weight, weight + weight_step, …
struct Taps {
  int64_t first, step, count;
  int64_t start, stride, taps;
  int64_t weight, weight_step;
};

// This is a plain struct because loops for several instruction sets read it.
struct AxisTaps {
  static constexpr int most = 4;  // the largest stride
  Taps of[most];
  int64_t classes;
  int64_t source, result;  // pixels
  // These are the numbers of zeros before and after the source that its taps reach.
  int64_t before, after;
};

// `in` and `out` are pixels of the convolution's input and output. Taps that see nothing but padding are left
// out: a kernel of 7 on an image of 2 pixels has 3.
AxisTaps forward_taps(int64_t in, int64_t out, int kernel, int stride, int pad);
AxisTaps backward_taps(int64_t in, int64_t out, int kernel, int stride, int pad);

struct PlaneTaps {
  AxisTaps rows, columns;

  // A frame holds a plane of the source with zeros before and after each row, so that no loop over columns
  // asks whether it is inside.
  int64_t frame_pixels() const { return rows.source * (columns.before + columns.source + columns.after); }
};

// Returns whether the convolution has taps of this kind: without dilation, and not wider padded than its
// kernel, nor strided than `most`.
bool has_taps(const Conv2dOptions&);
PlaneTaps forward_taps(const Conv2dOptions&, const Shape& x, const Shape& y);
PlaneTaps backward_taps(const Conv2dOptions&, const Shape& x, const Shape& y);

}  // namespace antichain::cpu
