// A Normaliser makes floats of an image's bytes, and carries its augmentation out on the way.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/augmentation.h"
#include "data/data_set.h"
#include "framework/tensor.h"

namespace antichain {

// Crop and flip move an image's pixels. This is the loop over the moved image.
//
// Calls take(channel, byte) for each pixel of the moved image, in the order of C x H x W; black is 0.
template <class Take>
void each_moved(std::span<const uint8_t> pixels, const Shape& chw, const Augmentation& drawn,
                const Take& take) {
  const int height = int(chw[1]), width = int(chw[2]);
  std::vector<int> columns(chw[2]);
  for (int x = 0; x < width; ++x) columns[size_t(x)] = source_column(drawn, x, width);
  for (int64_t c = 0; c < chw[0]; ++c)
    for (int y = 0; y < height; ++y) {
      const int row = source_row(drawn, y, height);
      const uint8_t* from = pixels.data() + (c * height + std::max(row, 0)) * width;
      for (const int column : columns)
        take(size_t(c), row == black || column == black ? uint8_t(0) : from[column]);
    }
}

// Computes (byte / 255 − mean) / deviation, per channel, from a table of the 256 possible bytes.
class Normaliser {
 public:
  using Table = std::array<std::array<float, 256>, 3>;
  explicit Normaliser(const Normalisation& = {});

  // `pixels` are C x H x W bytes with C = 1 or 3; `out` has as many floats.
  void operator()(std::span<const uint8_t> pixels, const Shape& chw, const Augmentation&,
                  std::span<float> out) const;
  const Table& table() const { return table_; }

 private:
  Table table_;
};

}  // namespace antichain
