#include "data/augment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/error.h"

namespace antichain {
namespace {

const std::array<std::string, 3> names_of_crops = {"none", "black", "reflect"};

constexpr AugmentationKind kinds[] = {
    // The stream's name is older than the other augmentations.
    {"augmentation", [](const AugmentOptions& o) { return o.crop != Crop::none || o.flip; }, draw_crop},
    {"trivial", [](const AugmentOptions& o) { return o.trivial; }, draw_trivial},
    {"erase", [](const AugmentOptions& o) { return o.erase > 0; }, draw_erased},
};

constexpr double least_area = 0.02, most_area = 0.33, least_aspect = 0.3, most_aspect = 3.3;
constexpr int erase_attempts = 10;

}  // namespace

std::span<const std::string> crop_names() { return names_of_crops; }

Crop parse_crop(std::string_view name) {
  const auto found = std::ranges::find(names_of_crops, name);
  ANTICHAIN_CHECK(found != names_of_crops.end(), "a crop's name");
  return Crop(found - names_of_crops.begin());
}

std::string describe(const AugmentOptions& o) {
  std::vector<std::string> parts;
  if (o.crop != Crop::none) parts.push_back(o.crop == Crop::reflect ? "crop with reflected edges" : "crop");
  if (o.flip) parts.push_back("flip");
  if (o.trivial) parts.push_back("TrivialAugment");
  if (o.erase > 0) parts.push_back(fmt::format("erase {:g}", o.erase));
  if (o.mixup > 0) parts.push_back(fmt::format("mixup {:g}", o.mixup));
  if (o.cutmix > 0) parts.push_back(fmt::format("cutmix {:g}", o.cutmix));
  return parts.empty() ? "no augmentation" : fmt::format("{}", fmt::join(parts, ", "));
}

std::span<const AugmentationKind> augmentation_kinds() { return kinds; }

Augmentation draw_augmentation(const AugmentOptions& options, const Shape& chw, uint64_t seed, int64_t epoch,
                               int64_t sample) {
  Augmentation result;
  for (const AugmentationKind& kind : kinds) {
    if (!kind.wanted(options)) continue;
    KeyedDraws draws(seed, kind.stream, epoch, sample);
    kind.draw(options, chw, draws, result);
  }
  return result;
}

int crop_padding(const Shape& chw) { return int(std::min(chw[1], chw[2]) / 8); }

// Crop and flip share one draw of random numbers. Each of its words keeps its meaning, whichever of the two
// are on.
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
