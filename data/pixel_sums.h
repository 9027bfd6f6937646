// PixelSums compute the mean and deviation of many images' pixels, per channel, from sums in whole numbers:
// the order of the images does not matter.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "data/data_set.h"

namespace antichain {

class PixelSums {
 public:
  explicit PixelSums(int64_t channels) : channels_(size_t(channels)) {}

  void add(std::span<const uint8_t> chw) {  // a plane per channel
    const size_t plane = chw.size() / channels_;
    for (size_t c = 0; c < channels_; ++c) {
      uint64_t sum = 0, squares = 0;
      for (const uint8_t byte : chw.subspan(c * plane, plane)) sum += byte, squares += uint64_t(byte) * byte;
      sum_[c] += sum, squares_[c] += squares;
    }
    count_ += plane;
  }
  // Returns mean and deviation of pixels scaled to [0, 1], those of grey three times. A deviation is at least
  // one level, even where all is one colour.
  Normalisation normalisation() const {
    Normalisation result;
    for (size_t c = 0; c < 3; ++c) {
      const size_t from = std::min(c, channels_ - 1);
      const double mean = double(sum_[from]) / double(count_);
      const double variance = double(squares_[from]) / double(count_) - mean * mean;
      result.mean[c] = float(mean / 255);
      result.deviation[c] = float(std::max(std::sqrt(std::max(variance, 0.0)), 1.0) / 255);
    }
    return result;
  }

 private:
  size_t channels_;
  std::array<uint64_t, 3> sum_{}, squares_{};
  uint64_t count_ = 0;
};

}  // namespace antichain
