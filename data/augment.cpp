#include "data/augment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
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

}  // namespace antichain
