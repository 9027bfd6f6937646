#include "data/normaliser.h"

#include <algorithm>
#include <vector>

#include "framework/error.h"

namespace antichain {
namespace {

void erase(const Box& box, const Shape& chw, std::span<float> out) {
  for (int64_t c = 0; c < chw[0]; ++c)
    for (int y = box.top; y < box.top + box.height; ++y)
      std::fill_n(out.begin() + (c * chw[1] + y) * chw[2] + box.left, box.width, 0.0f);
}

}  // namespace

Normaliser::Normaliser(const Normalisation& n) {
  for (size_t c = 0; c < 3; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      table_[c][size_t(byte)] = (float(byte) / 255.0f - n.mean[c]) / n.deviation[c];
    }
  }
}

void Normaliser::operator()(std::span<const uint8_t> pixels, const Shape& chw, const Augmentation& drawn,
                            std::span<float> out) const {
  ANTICHAIN_CHECK(chw.rank() == 3 && chw[0] == 3, "images have three channels");
  ANTICHAIN_CHECK(int64_t(pixels.size()) == chw.elements() && pixels.size() == out.size(),
                  "buffers of the image's size");
  const int height = int(chw[1]), width = int(chw[2]);
  std::vector<int> columns(chw[2]);
  for (int x = 0; x < width; ++x) columns[size_t(x)] = source_column(drawn, x, width);
  float* to = out.data();
  for (size_t c = 0; c < 3; ++c) {
    const uint8_t* plane = pixels.data() + c * size_t(height) * size_t(width);
    const std::array<float, 256>& value = table_[c];
    for (int y = 0; y < height; ++y) {
      const int row = source_row(drawn, y, height);
      const uint8_t* from = plane + int64_t(std::max(row, 0)) * width;
      for (const int column : columns) *to++ = value[row == black || column == black ? 0 : from[column]];
    }
  }
  erase(drawn.erased, chw, out);
}

}  // namespace antichain
