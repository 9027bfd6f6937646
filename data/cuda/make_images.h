// Makes images on the device from the bytes that the host sent (data/raw_images.h).
#pragma once

#include "framework/cuda/resources.h"
#include "framework/tensor.h"

namespace antichain::cuda {

// `raw` has the form for `images`, which are N x C x H x W (C = 1 or 3) in float32 or bf16, plain or nhwc;
// `table` is 3 x 256. All are on the device.
void make_images(Stream, const Tensor& raw, const Tensor& table, const Tensor& images);

}  // namespace antichain::cuda
