// TrivialAugment carries out one operation of fourteen on each image, with a random strength: Müller and
// Hutter, "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", ICCV 2021, in its wide
// form.
//
// Operations, strengths and results are those of torchvision 0.14's TrivialAugmentWide on uint8 tensors,
// bit for bit (tests/golden/trivial_augment.py): nearest neighbours, and black where the image ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/augment.h"
#include "data/augmentation.h"
#include "framework/tensor.h"

namespace antichain {

struct ImageOperation {
  const char* name;             // torchvision's: "ShearX"
  double (*strength)(int bin);  // bin 0 … 30; nullptr: it has none
  bool either_sign;             // the strength may be negative
  // Both images are C x H x W bytes and do not overlap; C = 3, or 1: grey.
  void (*carry_out)(std::span<const uint8_t> from, const Shape& chw, double strength, std::span<uint8_t> to);
};
constexpr int strength_bins = 31;
std::span<const ImageOperation> image_operations();  // the first does nothing

// Draws operation and strength evenly.
ImageChange draw_change(KeyedDraws&);
// If the augmentation has a change, carries out crop, flip and change on the image's bytes, and returns what
// is left of the augmentation; else returns it whole. `room` is kept between calls to save allocations.
Augmentation carry_out_in_bytes(const Augmentation&, const Shape& chw, std::span<uint8_t> pixels,
                                std::vector<uint8_t>& room);
void carry_out(const ImageChange&, std::span<const uint8_t> from, const Shape& chw, std::span<uint8_t> to);

}  // namespace antichain
