// Two images of a batch are mixed, and so are their labels, as in torchvision's references: each sample with
// the one before it in the batch, and the first with the last. A batch has one draw.
//
//   mixup    λ · image + (1 − λ) · other image, of normalised images: Zhang et al., "mixup: Beyond Empirical
//            Risk Minimization", ICLR 2018
//   cutmix   a rectangle of the other image is pasted, with an area of 1 − λ before the image's edges cut it:
//            Yun et al., "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable
//            Features", ICCV 2019
//
// λ is drawn from Beta(α, α). Where both are wanted, each batch has one of them, at random. The draw
// depends on (seed, epoch, batch) alone, so a batch has the same samples whatever its micro-batches.
#pragma once

#include <cstdint>
#include <span>

#include "data/augment.h"
#include "data/augmentation.h"
#include "framework/tensor.h"

namespace antichain {

struct Mix {
  float own = 1, other = 0;  // shares of the two labels, and of the two images where nothing is pasted
  Box pasted;                // of the other image
  constexpr bool mixes() const { return other > 0; }
};

constexpr float blended(const Mix& mix, float own, float other) { return mix.own * own + mix.other * other; }

// Returns what a mixed image has at row y and column x, where the two images have `own` and `other`.
constexpr float mixed(const Mix& mix, int y, int x, float own, float other) {
  if (mix.pasted.empty()) return blended(mix, own, other);
  return mix.pasted.holds(y, x) ? other : own;
}

// Writes the mixed image to `out`. All are C x H x W.
void mix_images(const Mix&, const Shape& chw, std::span<const float> own, std::span<const float> other,
                std::span<float> out);

bool mixes(const AugmentOptions&);
Mix draw_mix(const AugmentOptions&, const Shape& chw, uint64_t seed, int64_t epoch, int64_t batch);

}  // namespace antichain
