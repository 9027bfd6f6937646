#include "data/normaliser.h"

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
  ANTICHAIN_CHECK(chw.rank() == 3 && (chw[0] == 1 || chw[0] == 3), "images have one or three channels");
  ANTICHAIN_CHECK(int64_t(pixels.size()) == chw.elements() && pixels.size() == out.size(),
                  "buffers of the image's size");
  ANTICHAIN_CHECK(drawn.change.operation == 0, "changes of bytes are carried out before");
  float* to = out.data();
  each_moved(pixels, chw, drawn, [&](size_t c, uint8_t byte) { *to++ = table_[c][byte]; });
  erase(drawn.erased, chw, out);
}

}  // namespace antichain
