// Training images are augmented at random. Each augmentation is one row of a table, and a function that draws
// it.
//
//   crop     The image is padded by an eighth of its side (4 pixels of 32), and cropped back to its size at a
//            random place; the padding is black or a mirror of the image. The image is flipped at random.
//            With black it is the CIFAR recipe of He et al., "Deep Residual Learning for Image Recognition",
//            CVPR 2016.
//   trivial  One operation of TrivialAugment changes the image: data/augment_trivial.h.
//   erase    A random rectangle becomes zeros: Zhong et al., "Random Erasing Data Augmentation", AAAI 2020.
//
// The order is torchvision's: crop, flip, TrivialAugment, scale to [0, 1], subtract the channel mean,
// divide by the channel deviation, erase. So a padded black pixel becomes −mean / deviation and an erased
// one 0, the mean.
//
// The random draws depend on (seed, epoch, sample) alone, so that any rank draws the same.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/augmentation.h"
#include "framework/random.h"
#include "framework/tensor.h"

namespace antichain {

// KeyedDraws are the random numbers of one augmentation for one image, or for one batch of an epoch: a
// sequence that depends on (seed, stream, epoch, number) alone, so that any rank draws the same, and no
// augmentation shifts another's draws.
class KeyedDraws {
 public:
  KeyedDraws(uint64_t seed, std::string_view stream, int64_t epoch, int64_t number)
      : key_(mix(seed, hash_bytes(stream))), epoch_(uint64_t(epoch)), number_(uint64_t(number)) {}

  uint32_t word() {
    if (used_ % 4 == 0) words_ = Philox(used_ == 0 ? key_ : mix(key_, used_)).words(number_, epoch_);
    return words_[used_++ % 4];
  }
  // Returns 0 … places − 1. The bias is below places / 2^32.
  int below(int places) { return int((uint64_t(word()) * uint64_t(places)) >> 32); }
  bool coin() { return (word() >> 31) != 0; }
  // Returns a number of [low, high).
  double between(double low, double high) { return low + (high - low) * (double(word()) * 0x1p-32); }

 private:
  const uint64_t key_, epoch_, number_;
  std::array<uint32_t, 4> words_{};
  uint64_t used_ = 0;
};

enum class Crop { none, black, reflect };

struct AugmentOptions {
  Crop crop = Crop::black;
  bool flip = true;
  bool trivial = false;          // TrivialAugment
  double erase = 0;              // the share of the images with an erased rectangle
  double mixup = 0, cutmix = 0;  // α of the Beta distribution; 0: not done (data/mix.h)
  bool operator==(const AugmentOptions&) const = default;
};

std::span<const std::string> crop_names();    // none, black, reflect
Crop parse_crop(std::string_view name);       // one of them
std::string describe(const AugmentOptions&);  // "crop, flip, erase 0.25"

// One augmentation: the name of its random numbers, whether it is wanted, and what it draws.
struct AugmentationKind {
  const char* stream;
  bool (*wanted)(const AugmentOptions&);
  void (*draw)(const AugmentOptions&, const Shape& chw, KeyedDraws&, Augmentation&);
};
std::span<const AugmentationKind> augmentation_kinds();

int crop_padding(const Shape& chw);  // pixels: an eighth of the shorter side, rounded down
void draw_crop(const AugmentOptions&, const Shape& chw, KeyedDraws&, Augmentation&);
void draw_trivial(const AugmentOptions&, const Shape& chw, KeyedDraws&, Augmentation&);
// The rectangle has 2 to 33 % of the image's area and an aspect ratio (height to width) of 0.3 to 3.3, as in
// torchvision's RandomErasing. Where ten draws do not fit into the image, nothing is erased.
void draw_erased(const AugmentOptions&, const Shape& chw, KeyedDraws&, Augmentation&);

// Draws all wanted augmentations of an image of that shape.
Augmentation draw_augmentation(const AugmentOptions&, const Shape& chw, uint64_t seed, int64_t epoch,
                               int64_t sample);

}  // namespace antichain
