// Images made on the device of what the host sent of them (data/raw_images.h).
#pragma once

#include "framework/cuda/resources.h"
#include "framework/tensor.h"

namespace antichain::cuda {

// raw: of the form for `images`, N x 3 x H x W in float32 or bf16, plain or nhwc; table: 3 x 256. All on the
// device.
void make_images(Stream, const Tensor& raw, const Tensor& table, const Tensor& images);

}  // namespace antichain::cuda
