// RawImages hold a micro-batch of images as the data set has them, with the random draws for each. A device
// crops, flips and normalises them, and they travel as bytes, a quarter of their floats. The host makes the
// draws and the table from bytes to floats, so that device and host make the same bits.
//
// One tensor holds both: a record for each image, then C x H x W bytes for each. Where images are mixed
// (data/mix.h), the image before the first comes first: the micro-batch's N samples are images 1 … N.
#pragma once

#include <cstdint>

#include "data/augmentation.h"
#include "data/mix.h"
#include "data/normaliser.h"
#include "framework/tensor.h"

namespace antichain {

struct DrawnImage {
  Augmentation drawn;
  int32_t real = 0;  // 0: the sample pads the last batch, its image is zeros
  Mix mix = {};      // with the image before
};

struct RawImages {
  Shape shape;              // N x C x H x W: what they become
  Normaliser::Table table;  // by channel (grey: the first) and byte; a pixel outside the image is a 0
  bool mixed = false;       // one image more
};

// Return the tensor's form and parts, for images N x C x H x W.
inline int64_t raw_records_bytes(const Shape& images, bool mixed) {
  return (images[0] + mixed) * int64_t(sizeof(DrawnImage));
}
inline TensorSpec raw_spec(const Shape& images, bool mixed = false) {
  const int64_t image_bytes = images.elements() / images[0];
  return {{raw_records_bytes(images, mixed) + (images[0] + mixed) * image_bytes}, DType::u8};
}
inline DrawnImage* raw_records(const Tensor& raw) { return raw.data<DrawnImage>(); }
inline uint8_t* raw_pixels(const Tensor& raw, const Shape& images, bool mixed = false) {
  return raw.data<uint8_t>() + raw_records_bytes(images, mixed);
}

}  // namespace antichain
