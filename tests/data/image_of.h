// Returns the pixels of one image of a data set, C x H x W bytes.
#pragma once

#include <vector>

#include "data/data_set.h"

namespace antichain {

inline std::vector<uint8_t> image_of(const ImageSet& set, int64_t index) {
  std::vector<uint8_t> pixels(size_t(set.image_shape().elements()));
  set.image(index, pixels);
  return pixels;
}

}  // namespace antichain
