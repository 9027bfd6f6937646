// The same numbers in another order, in another type, or both. T and U are float or Bf16; what is stored in
// fewer bits is rounded to nearest.
#pragma once

#include "framework/bf16.h"
#include "layers/cuda/image.h"

namespace antichain::cuda {

// Images between NCHW and NHWC; `image` has the sizes of both.
template <class T, class U>
void to_nhwc(Stream, const Image& image, const T* nchw, U* nhwc);
template <class T, class U>
void to_nchw(Stream, const Image& image, const T* nhwc, U* nchw);

// As they lie.
template <class T, class U>
void convert(Stream, int64_t count, const T* from, U* to);

}  // namespace antichain::cuda
