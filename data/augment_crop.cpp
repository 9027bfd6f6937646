// Crop and flip share one draw of random numbers. Each of its words keeps its meaning, whichever of the two
// are on.
#include <algorithm>

#include "data/augment.h"

namespace antichain {

int crop_padding(const Shape& chw) { return int(std::min(chw[1], chw[2]) / 8); }

void draw_crop(const AugmentOptions& options, const Shape& chw, KeyedDraws& draws, Augmentation& result) {
  const int padding = crop_padding(chw);
  const int down = draws.below(2 * padding + 1) - padding, right = draws.below(2 * padding + 1) - padding;
  const bool flip = draws.coin();
  if (options.crop != Crop::none) {
    result.down = down;
    result.right = right;
    result.reflects = options.crop == Crop::reflect;
  }
  result.flip = options.flip && flip;
}

}  // namespace antichain
