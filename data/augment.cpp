#include "data/augment.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/random.h"

namespace antichain {

int crop_padding(const Shape& chw) { return int(std::min(chw[1], chw[2]) / 8); }

Augmentation draw_augmentation(uint64_t seed, int64_t epoch, int64_t sample, int padding) {
  const Philox random(mix(seed, hash_bytes("augmentation")));
  const auto words = random.words(uint64_t(sample), uint64_t(epoch));
  // word · places / 2^32: the bias is below places / 2^32, some 2e-9 here.
  const auto place = [&](uint32_t word) {
    return int((uint64_t(word) * uint64_t(2 * padding + 1)) >> 32) - padding;
  };
  return {.down = place(words[0]), .right = place(words[1]), .flip = (words[2] >> 31) != 0};
}

Normaliser::Normaliser(const Normalisation& n) {
  for (size_t c = 0; c < 3; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      table_[c][size_t(byte)] = (float(byte) / 255.0f - n.mean[c]) / n.deviation[c];
    }
  }
}

void Normaliser::operator()(std::span<const uint8_t> pixels, const Shape& chw, const Augmentation& draw,
                            std::span<float> out) const {
  ANTICHAIN_CHECK(chw.rank() == 3 && chw[0] == 3, "images have three channels");
  ANTICHAIN_CHECK(int64_t(pixels.size()) == chw.elements() && pixels.size() == out.size(),
                  "buffers of the image's size");
  const int64_t height = chw[1], width = chw[2];
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const int64_t from_y = y + draw.down;
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from_x = (draw.flip ? width - 1 - x : x) + draw.right;
        const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
        const uint8_t byte = inside ? pixels[size_t((c * height + from_y) * width + from_x)] : 0;
        out[size_t((c * height + y) * width + x)] = table_[size_t(c)][byte];
      }
    }
  }
}

}  // namespace antichain
