// A Normaliser makes floats of an image's bytes, and carries its augmentation out on the way.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "data/augmentation.h"
#include "data/data_set.h"
#include "framework/tensor.h"

namespace antichain {

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
