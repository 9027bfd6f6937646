// Copies numbers in another order, to another type, or both. T and U are float or Bf16; a conversion to fewer
// bits rounds to nearest.
#pragma once

#include "framework/bf16.h"
#include "layers/cuda/image.h"

namespace antichain::cuda {

// Reorders images between NCHW and NHWC; `image` has the sizes of both.
template <class T, class U>
void to_nhwc(Stream, const Image& image, const T* nchw, U* nhwc);
template <class T, class U>
void to_nchw(Stream, const Image& image, const T* nhwc, U* nchw);

// Converts elements without reordering them.
template <class T, class U>
void convert(Stream, int64_t count, const T* from, U* to);

}  // namespace antichain::cuda
