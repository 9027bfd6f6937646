// A DenseView is a tensor as it lies in memory: a row-major array whose dimensions are the tensor's, in the
// order of its layout. A blocked layout has one dimension more, the channels of a block.
//
//   plain     as the shape
//   nhwc      N x H x W x C
//   nChw16c   N x C/16 x H x W x 16, C/16 rounded up
#pragma once

#include "framework/tensor.h"

namespace antichain {

struct DenseView {
  Shape dims;
  Layout layout;
  int64_t block;  // channels of a block; 1 where they are not blocked

  explicit DenseView(const TensorSpec& spec)
      : dims(spec.shape),
        layout(spec.layout),
        block(layout == Layout::nChw16c  ? 16
              : layout == Layout::nChw8c ? 8
                                         : 1) {
    const Shape& s = spec.shape;
    if (layout == Layout::nhwc) dims = {s[0], s[2], s[3], s[1]};
    if (block > 1) dims = {s[0], (s[1] + block - 1) / block, s[2], s[3], block};
  }

  // Returns where the tensor's dimension `axis` is among `dims`. Blocked channels are in two places; this is
  // the first.
  int place(int axis) const {
    constexpr int of_nhwc[] = {0, 3, 1, 2};
    return layout == Layout::nhwc ? of_nhwc[axis] : axis;
  }
};

}  // namespace antichain
