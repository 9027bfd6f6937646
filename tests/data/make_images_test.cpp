// Tests that the device's images are the host's, bit for bit: the kernel of data/cuda runs as a loop on the
// host, beside Normaliser and Loader.
#include "data/cuda/make_images.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/loader.h"
#include "framework/bf16.h"
#include "framework/random.h"
#include "tests/data/memory_set.h"

namespace antichain {
namespace {

struct Form {
  DType dtype;
  Layout layout;
};
const Form forms[] = {{DType::f32, Layout::plain},
                      {DType::f32, Layout::nhwc},
                      {DType::bf16, Layout::plain},
                      {DType::bf16, Layout::nhwc}};

Tensor table_of(const Normaliser& normaliser) {
  const Tensor table = Tensor::host({{3, 256}});
  std::memcpy(table.raw(), &normaliser.table(), sizeof normaliser.table());
  return table;
}

// Returns the same numbers in another form, by a rule of its own.
std::vector<uint32_t> bits_in(const std::vector<float>& nchw, const Shape& s, const Form& form) {
  std::vector<uint32_t> bits(nchw.size());
  size_t i = 0;
  for (int64_t n = 0; n < s[0]; ++n)
    for (int64_t c = 0; c < s[1]; ++c)
      for (int64_t y = 0; y < s[2]; ++y)
        for (int64_t x = 0; x < s[3]; ++x, ++i) {
          const int64_t at =
              form.layout == Layout::plain ? int64_t(i) : ((n * s[2] + y) * s[3] + x) * s[1] + c;
          bits[size_t(at)] =
              form.dtype == DType::bf16 ? Bf16(nchw[i]).bits : std::bit_cast<uint32_t>(nchw[i]);
        }
  return bits;
}

std::vector<uint32_t> bits_of(const Tensor& t) {
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < t.elements(); ++i)
    bits.push_back(t.dtype() == DType::bf16 ? t.data<uint16_t>()[i] : t.data<uint32_t>()[i]);
  return bits;
}

void expect_images(const std::vector<float>& right, const Tensor& raw, const Normaliser& normaliser,
                   const Shape& shape) {
  for (const Form& form : forms) {
    const Tensor images = Tensor::host({shape, form.dtype, form.layout});
    std::memset(images.raw(), 0xAA, size_t(images.bytes()));
    cuda::make_images(nullptr, raw, table_of(normaliser), images);
    EXPECT_EQ(bits_of(images), bits_in(right, shape, form)) << name_of(form.dtype) << name_of(form.layout);
  }
}

// Checks images of noise, in all 256 bytes, one for each draw; an image without a draw is padding.
void expect_as_on_the_host(const Shape& chw, const std::vector<std::optional<Augmentation>>& draws) {
  const Shape shape{int64_t(draws.size()), chw[0], chw[1], chw[2]};
  const Tensor raw = Tensor::host(raw_spec(shape));
  const Normaliser normaliser({.mean = {0.1f, 0.5f, 0.7f}, .deviation = {0.2f, 0.3f, 0.25f}});
  const Philox random(1);
  std::vector<float> right;
  for (size_t n = 0; n < draws.size(); ++n) {
    const std::span<uint8_t> pixels(raw_pixels(raw, shape) + int64_t(n) * chw.elements(),
                                    size_t(chw.elements()));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = uint8_t(random.words(i, n)[0]);
    std::vector<float> image(pixels.size());
    raw_records(raw)[n] = {};
    if (const auto& draw = draws[n]) {
      raw_records(raw)[n] = {*draw, 1};
      normaliser(pixels, chw, *draw, image);
    }
    right.insert(right.end(), image.begin(), image.end());
  }
  expect_images(right, raw, normaliser, shape);
}

TEST(MakeImages, AreTheHostsForEveryDrawOfCifar) {
  std::vector<std::optional<Augmentation>> draws;
  for (int down = -4; down <= 4; ++down)
    for (int right = -4; right <= 4; ++right)
      for (const bool flip : {false, true}) draws.push_back(Augmentation{down, right, flip});
  expect_as_on_the_host({3, 32, 32}, draws);
}

TEST(MakeImages, AreTheHostsForOtherSizesAndBeyondTheEdges) {
  for (const Shape& chw : {Shape{3, 5, 9}, Shape{3, 9, 4}, Shape{3, 1, 1}, Shape{1, 8, 8}, Shape{3, 8, 17}}) {
    const int height = int(chw[1]), width = int(chw[2]);
    std::vector<std::optional<Augmentation>> draws{std::nullopt};
    for (const int down : {-height - 1, -height, 1 - height, -1, 0, 1, height - 1, height, height + 1})
      for (const int right : {-width - 1, -width, 1 - width, -1, 0, 1, width - 1, width, width + 1})
        for (const bool flip : {false, true}) draws.push_back(Augmentation{down, right, flip});
    draws.push_back(std::nullopt);
    expect_as_on_the_host(chw, draws);
  }
}

TEST(MakeImages, AreTheHostsForImageNetsSize) {
  const int most = crop_padding({3, 224, 224});
  expect_as_on_the_host({3, 224, 224}, {Augmentation{most, -most, true}, Augmentation{-most, most, false},
                                        std::nullopt, Augmentation{3, -7, true}});
}

TEST(MakeImages, RefusesOtherBytes) {
  const Tensor images = Tensor::host({{2, 3, 8, 8}}), table = table_of(Normaliser());
  EXPECT_THROW(cuda::make_images(nullptr, Tensor::host(raw_spec({4, 3, 8, 8})), table, images), Error);
  EXPECT_THROW(cuda::make_images(nullptr, Tensor::host(raw_spec({2, 3, 8, 8})), images, images), Error);
}

// Images that differ from pixel to pixel.
class Noise : public MemorySet {
 public:
  using MemorySet::MemorySet;
  void image(int64_t index, std::span<uint8_t> out) const override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = uint8_t(Philox(uint64_t(index)).words(i)[0]);
  }
  Normalisation normalisation() const override { return {.mean = {0.4f, 0.5f, 0.6f}}; }
};

struct RawCase {
  const char* name;
  bool train = true;
  AugmentOptions augment = {};
};
class RawLoader : public ::testing::TestWithParam<RawCase> {};

// In and out of order, over an epoch's end, and with samples that pad.
TEST_P(RawLoader, GivesWhatTheLoadersImagesAreMadeOf) {
  const auto set = std::make_shared<Noise>(11);
  LoaderOptions options{.batch = 4,
                        .microbatches = 2,
                        .seed = 9,
                        .train = GetParam().train,
                        .augment = GetParam().augment,
                        .ahead = 2};
  Loader made(set, options);
  options.raw = true;
  Loader raw(set, options);
  EXPECT_EQ(made.raw(), nullptr);
  ASSERT_NE(raw.raw(), nullptr);
  const Shape shape = raw.raw()->shape;
  const bool mixed = raw.raw()->mixed;
  const Tensor floats = Tensor::host({shape}), bytes = Tensor::host(raw_spec(shape, mixed));
  EXPECT_LT(bytes.bytes(), floats.bytes() * (mixed ? 39 : 26) / 100);  // two images, and one more
  const Normaliser normaliser(set->normalisation());
  EXPECT_EQ(raw.raw()->table, normaliser.table());
  const auto expect_same = [&](const BatchPosition& position, int m) {
    made.fill_images(position, m, floats);
    std::memset(bytes.raw(), 0xFF, size_t(bytes.bytes()));
    raw.fill_images(position, m, bytes);
    expect_images({floats.data<float>(), floats.data<float>() + floats.elements()}, bytes, normaliser, shape);
  };
  BatchPosition position;
  for (int batch = 0; batch < 9; ++batch, position = raw.sampler().after(position))
    for (const int m : {0, 1}) expect_same(position, m);
  expect_same({2, 1}, 1);
  expect_same({0, 0}, 0);
}
INSTANTIATE_TEST_SUITE_P(
    , RawLoader,
    ::testing::Values(RawCase{"Training"}, RawCase{"Evaluating", false},
                      RawCase{"Reflecting", true, {.crop = Crop::reflect}},
                      RawCase{"Erasing", true, {.crop = Crop::none, .erase = 0.7}},
                      RawCase{"Mixing", true, {.trivial = true, .erase = 0.5, .mixup = 0.4, .cutmix = 1}},
                      RawCase{"EvaluatingBesideMixing", false, {.mixup = 1}}),
    [](const auto& info) { return info.param.name; });

TEST(LoaderOfRawImages, FillsNothingElse) {
  Loader raw(std::make_shared<Noise>(11), {.batch = 4, .raw = true});
  EXPECT_THROW(raw.fill_images({}, 0, Tensor::host({{4, 3, 32, 32}})), Error);
  EXPECT_EQ(Loader(std::make_shared<Noise>(11), {.batch = 4, .images = false, .raw = true}).raw(), nullptr);
}

}  // namespace
}  // namespace antichain
