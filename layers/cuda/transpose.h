// Images between NCHW and NHWC; `image` has the sizes of both.
#pragma once

#include "layers/cuda/image.h"

namespace antichain::cuda {

void to_nhwc(Stream, const Image& image, const float* nchw, float* nhwc);
void to_nchw(Stream, const Image& image, const float* nhwc, float* nchw);

}  // namespace antichain::cuda
