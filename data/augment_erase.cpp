// Random erasing follows torchvision's RandomErasing, which erases to zeros after normalising.
#include <cmath>

#include "data/augment.h"

namespace antichain {
namespace {

constexpr double least_area = 0.02, most_area = 0.33, least_aspect = 0.3, most_aspect = 3.3;
constexpr int erase_attempts = 10;

}  // namespace

void draw_erased(const AugmentOptions& options, const Shape& chw, KeyedDraws& draws, Augmentation& result) {
  if (draws.between(0, 1) >= options.erase) return;
  const int height = int(chw[1]), width = int(chw[2]);
  for (int attempt = 0; attempt < erase_attempts; ++attempt) {
    const double area = double(height) * width * draws.between(least_area, most_area);
    const double aspect = std::exp(draws.between(std::log(least_aspect), std::log(most_aspect)));
    const int h = int(std::lround(std::sqrt(area * aspect)));
    const int w = int(std::lround(std::sqrt(area / aspect)));
    if (h >= height || w >= width) continue;
    const int top = draws.below(height - h + 1), left = draws.below(width - w + 1);
    result.erased = {top, left, h, w};
    return;
  }
}

}  // namespace antichain
