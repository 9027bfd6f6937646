// Augments one training image, and normalises every image: pad by black pixels (an eighth of the image's
// side: 4 of 32), crop back to size at a random place, flip at random, scale to [0, 1], subtract the channel
// mean, divide by the channel deviation. This is the CIFAR recipe of He et al., "Deep Residual Learning for
// Image Recognition", CVPR 2016, in torchvision's order, so a padded pixel becomes −mean / deviation.
//
// The random draws depend on (seed, epoch, sample) alone, so that any rank draws the same.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "data/data_set.h"
#include "framework/tensor.h"

namespace antichain {

struct Augmentation {
  int down = 0, right = 0;  // by how many pixels the window moves, −padding … padding
  bool flip = false;        // left to right, after the crop
};

int crop_padding(const Shape& chw);  // pixels: an eighth of the shorter side, rounded down

Augmentation draw_augmentation(uint64_t seed, int64_t epoch, int64_t sample, int padding = 4);

// Computes (byte / 255 − mean) / deviation, per channel, from a table of the 256 possible bytes.
class Normaliser {
 public:
  using Table = std::array<std::array<float, 256>, 3>;
  explicit Normaliser(const Normalisation& = {});

  // `pixels` are C x H x W bytes with C = 3; `out` has as many floats.
  void operator()(std::span<const uint8_t> pixels, const Shape& chw, const Augmentation&,
                  std::span<float> out) const;
  const Table& table() const { return table_; }

 private:
  Table table_;
};

}  // namespace antichain
