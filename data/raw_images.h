// A micro-batch of images as the data set has them, with what was drawn for each: a device crops, flips and
// normalises them by itself, and they travel as bytes, a quarter of their floats. The draws are the host's,
// and so is the table from bytes to floats: whoever makes the images gets the same bits.
//
// One tensor holds both: N records, then N x 3 x H x W bytes.
#pragma once

#include <cstdint>

#include "data/augment.h"
#include "framework/tensor.h"

namespace antichain {

struct DrawnImage {
  int32_t down = 0, right = 0, flip = 0;  // Augmentation
  int32_t real = 0;                       // 0: the sample pads the last batch, its image is zeros
};

struct RawImages {
  Shape shape;              // N x 3 x H x W: what they become
  Normaliser::Table table;  // by channel and byte; a pixel outside the image is a 0
};

// The tensor, and what is where in it.
inline int64_t raw_records_bytes(const Shape& images) { return images[0] * int64_t(sizeof(DrawnImage)); }
inline TensorSpec raw_spec(const Shape& images) {
  return {{raw_records_bytes(images) + images.elements()}, DType::u8};
}
inline DrawnImage* raw_records(const Tensor& raw) { return raw.data<DrawnImage>(); }
inline uint8_t* raw_pixels(const Tensor& raw, const Shape& images) {
  return raw.data<uint8_t>() + raw_records_bytes(images);
}

}  // namespace antichain
