#include "data/channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

// A Converted set has the images of another one in another number of channels; all else is the other's.
class Converted : public ImageSet {
 public:
  explicit Converted(std::shared_ptr<const ImageSet> from)
      : from_(std::move(from)), channels_(from_->image_shape()[0] == 1 ? 3 : 1) {}

  std::string name() const override { return from_->name(); }
  int64_t size() const override { return from_->size(); }
  Shape image_shape() const override {
    const Shape chw = from_->image_shape();
    return {channels_, chw[1], chw[2]};
  }
  std::span<const std::string> class_names() const override { return from_->class_names(); }
  int label(int64_t index) const override { return from_->label(index); }
  Normalisation normalisation() const override { return from_->normalisation(); }
  std::string replaced() const override { return from_->replaced(); }

  void image(int64_t index, std::span<uint8_t> out) const override {
    const Shape chw = image_shape();
    ANTICHAIN_CHECK(int64_t(out.size()) == chw.elements(), "an image needs a buffer of its own size");
    const auto plane = size_t(chw[1] * chw[2]);
    if (channels_ == 3) {
      from_->image(index, out.first(plane));
      for (size_t c = 1; c < 3; ++c) std::ranges::copy(out.first(plane), out.begin() + ptrdiff_t(c * plane));
      return;
    }
    thread_local std::vector<uint8_t> colours;
    colours.resize(3 * plane);
    from_->image(index, colours);
    const uint8_t *red = colours.data(), *green = red + plane, *blue = green + plane;
    for (size_t p = 0; p < plane; ++p)
      out[p] = uint8_t((19595u * red[p] + 38470u * green[p] + 7471u * blue[p] + 0x8000u) >> 16);
  }

 private:
  std::shared_ptr<const ImageSet> from_;
  int64_t channels_;
};

bool is_one(const Normalisation& n) {
  return std::ranges::count(n.mean, n.mean[0]) == 3 && std::ranges::count(n.deviation, n.deviation[0]) == 3;
}

ImageSplits converted(const ImageSplits& splits) {
  return {.train = std::make_shared<Converted>(splits.train),
          .test = std::make_shared<Converted>(splits.test)};
}

}  // namespace

ImageSplits with_channels(const ImageSplits& splits, int64_t channels) {
  ANTICHAIN_CHECK(channels == 1 || channels == 3, "images are grey or have three colours");
  const bool as_they_are = splits.train->image_shape()[0] == channels;
  if (channels == 1 && as_they_are && !is_one(splits.train->normalisation()))
    throw Error(fmt::format("{} has three means or deviations for its grey images", splits.train->name()),
                "give one of each for a network of one channel");
  if (as_they_are) return splits;
  if (channels == 1)
    throw Error(fmt::format("the images of {} are in colour, but the network takes one channel",
                            splits.train->name()),
                "antichain data pack --grey makes them grey", ExitCode::usage);
  return converted(splits);
}

ImageSplits in_grey(const ImageSplits& splits) {
  return splits.train->image_shape()[0] == 1 ? splits : converted(splits);
}

}  // namespace antichain
