// An Image has the sizes of an image tensor in NHWC, as kernels number its elements: ((n · height + y) ·
// width + x) · channels + c. Rows (N x C) are images of one pixel.
#pragma once

#include "framework/cuda/launch.h"
#include "framework/tensor.h"

namespace antichain::cuda {

struct Image {
  Index images, channels, height, width;

  explicit Image(const Shape& s)
      : images(index_of(s[0])),
        channels(index_of(s[1])),
        height(s.rank() == 4 ? index_of(s[2]) : 1),
        width(s.rank() == 4 ? index_of(s[3]) : 1) {
    index_of(s.elements());
  }

  int64_t elements() const { return int64_t(images) * channels * height * width; }
  int64_t pixels() const { return int64_t(images) * height * width; }  // of all images

  // These return the position of element i.
  ANTICHAIN_ANYWHERE Index channel(Index i) const { return i % channels; }
  ANTICHAIN_ANYWHERE Index column(Index i) const { return i / channels % width; }
  ANTICHAIN_ANYWHERE Index row(Index i) const { return i / channels / width % height; }
  ANTICHAIN_ANYWHERE Index image(Index i) const { return i / channels / width / height; }
  ANTICHAIN_ANYWHERE Index at(Index n, Index y, Index x, Index c) const {
    return ((n * height + y) * width + x) * channels + c;
  }
};

}  // namespace antichain::cuda
