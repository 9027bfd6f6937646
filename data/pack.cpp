#include "data/pack.h"

#include <algorithm>
#include <array>
#include <vector>

#include "data/pixel_sums.h"
#include "framework/error.h"
#include "framework/files/hdf5_arrays.h"

namespace antichain {
namespace {

constexpr int64_t block_bytes = int64_t(4) << 20;  // written at a time

std::vector<int64_t> shape_of(const ImageSet& set, const PackOptions& options) {
  const Shape chw = set.image_shape();
  if (options.interleaved) return {set.size(), chw[1], chw[2], chw[0]};
  return {set.size(), chw[0], chw[1], chw[2]};
}

std::vector<double> numbers(const std::array<float, 3>& values, int64_t channels) {
  return {values.begin(), values.begin() + channels};
}

std::vector<Attribute> attributes_of(const ImageSet& set, const Normalisation& normalisation,
                                     const PackOptions& options) {
  const int64_t channels = set.image_shape()[0];
  return {{"name", set.name()},
          {"layout", options.interleaved ? "NHWC" : "NCHW"},
          {"class_names", std::vector<std::string>(set.class_names().begin(), set.class_names().end())},
          {"mean", numbers(normalisation.mean, channels)},
          {"std", numbers(normalisation.deviation, channels)}};
}

void interleave(std::span<const uint8_t> chw, size_t channels, std::span<uint8_t> hwc) {
  const size_t plane = chw.size() / channels;
  for (size_t c = 0; c < channels; ++c)
    for (size_t p = 0; p < plane; ++p) hwc[channels * p + c] = chw[c * plane + p];
}

// Says whether three planes are equal.
bool is_grey(std::span<const uint8_t> chw, size_t channels) {
  const size_t plane = chw.size() / channels;
  return channels == 3 && std::ranges::equal(chw.first(2 * plane), chw.last(2 * plane));
}

// Calls `take` for every image of a split, in order, as planes.
void for_each_image(const ImageSet& set, const auto& take) {
  std::vector<uint8_t> pixels(size_t(set.image_shape().elements()));
  for (int64_t i = 0; i < set.size(); ++i) {
    set.image(i, pixels);
    take(std::span<const uint8_t>(pixels));
  }
}

class Packer {
 public:
  Packer(const ImageSplits& splits, const PackOptions& options)
      : splits_(splits), options_(options), total_(splits.train->size() + splits.test->size()) {}

  Packed run(const std::string& file) {
    ArrayWriter writer(file,
                       {{.path = "train/images",
                         .shape = shape_of(*splits_.train, options_),
                         .compressed = options_.compressed},
                        {.path = "train/labels", .shape = {splits_.train->size()}, .type = ArrayType::i64},
                        {.path = "test/images",
                         .shape = shape_of(*splits_.test, options_),
                         .compressed = options_.compressed},
                        {.path = "test/labels", .shape = {splits_.test->size()}, .type = ArrayType::i64}});
    PixelSums sums(splits_.train->image_shape()[0]);
    write(writer, 0, *splits_.train, &sums);
    write(writer, 2, *splits_.test, nullptr);
    const Normalisation normalisation = options_.normalisation.value_or(sums.normalisation());
    for (const Attribute& attribute : attributes_of(*splits_.train, normalisation, options_))
      writer.set(attribute);
    writer.finish();
    return packed_;
  }

 private:
  // Writes images to `array` and labels to the next one; adds the pixels to `sums`, where wanted.
  void write(ArrayWriter& writer, size_t array, const ImageSet& set, PixelSums* sums) {
    const auto image_bytes = size_t(set.image_shape().elements());
    const size_t at_once = options_.compressed ? 1 : std::max<size_t>(size_t(block_bytes) / image_bytes, 1);
    std::vector<uint8_t> block;
    for_each_image(set, [&](std::span<const uint8_t> pixels) {
      if (sums != nullptr) sums->add(pixels);
      packed_.all_grey = packed_.all_grey && is_grey(pixels, size_t(set.image_shape()[0]));
      block.resize(block.size() + image_bytes);
      const std::span<uint8_t> target = std::span(block).last(image_bytes);
      if (options_.interleaved)
        interleave(pixels, size_t(set.image_shape()[0]), target);
      else
        std::ranges::copy(pixels, target.begin());
      if (block.size() == at_once * image_bytes) {
        writer.append(array, std::as_bytes(std::span(block)));
        block.clear();
      }
      options_.progress(++done_, total_);
    });
    writer.append(array, std::as_bytes(std::span(block)));
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < set.size(); ++i) labels.push_back(set.label(i));
    writer.append(array + 1, std::as_bytes(std::span(labels)));
  }

  const ImageSplits& splits_;
  const PackOptions& options_;
  Packed packed_;
  int64_t done_ = 0, total_;
};

}  // namespace

Packed pack(const ImageSplits& splits, const std::string& file, const PackOptions& options) {
  ANTICHAIN_CHECK(splits.train->image_shape() == splits.test->image_shape(), "one size of images");
  return Packer(splits, options).run(file);
}

}  // namespace antichain
