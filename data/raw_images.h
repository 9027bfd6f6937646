// RawImages hold a micro-batch of images as the data set has them, with the random draws for each. A device
// crops, flips and normalises them, and they travel as bytes, a quarter of their floats. The host makes the
// draws and the table from bytes to floats, so that device and host make the same bits.
//
// One tensor holds both: N records, then N x 3 x H x W bytes.
#pragma once

#include <cstdint>

#include "data/augmentation.h"
#include "data/normaliser.h"
#include "framework/tensor.h"

namespace antichain {

struct DrawnImage {
  Augmentation drawn;
  int32_t real = 0;  // 0: the sample pads the last batch, its image is zeros
};

struct RawImages {
  Shape shape;              // N x 3 x H x W: what they become
  Normaliser::Table table;  // by channel and byte; a pixel outside the image is a 0
};

// Return the tensor's parts and their places.
inline int64_t raw_records_bytes(const Shape& images) { return images[0] * int64_t(sizeof(DrawnImage)); }
inline TensorSpec raw_spec(const Shape& images) {
  return {{raw_records_bytes(images) + images.elements()}, DType::u8};
}
inline DrawnImage* raw_records(const Tensor& raw) { return raw.data<DrawnImage>(); }
inline uint8_t* raw_pixels(const Tensor& raw, const Shape& images) {
  return raw.data<uint8_t>() + raw_records_bytes(images);
}

}  // namespace antichain
