// Tests that grey images become colour and back, and that the networks of one channel get the grey ones.
#include "data/channels.h"

#include <gtest/gtest.h>

#include <cstring>

#include "data/augment.h"
#include "data/augment_trivial.h"
#include "data/loader.h"
#include "tests/data/image_of.h"
#include "tests/data/memory_set.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// Colours that differ from pixel to pixel.
class Colours : public MemorySet {
 public:
  using MemorySet::MemorySet;
  void image(int64_t index, std::span<uint8_t> out) const override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = uint8_t(size_t(index) * 31 + i * 7 + i / 1024 * 50);
  }
  Normalisation normalisation() const override { return {{0.5f, 0.5f, 0.5f}, {0.25f, 0.25f, 0.25f}}; }
};

ImageSplits both(std::shared_ptr<const ImageSet> set) { return {.train = set, .test = set}; }

// Pillow makes 69, 2, 255 of these three pixels: Image.fromarray(np.uint8([[[200, 10, 30], [1, 2, 3],
// [255, 255, 255]]])).convert("L").
TEST(Channels, GreyIsPillows) {
  class Three : public Colours {
   public:
    using Colours::Colours;
    Shape image_shape() const override { return {3, 1, 3}; }
    void image(int64_t, std::span<uint8_t> out) const override {
      std::ranges::copy(std::array<uint8_t, 9>{200, 1, 255, 10, 2, 255, 30, 3, 255}, out.begin());
    }
  };
  const ImageSplits grey = in_grey(both(std::make_shared<Three>(1)));
  EXPECT_EQ(grey.train->image_shape(), (Shape{1, 1, 3}));
  EXPECT_EQ(image_of(*grey.train, 0), (std::vector<uint8_t>{69, 2, 255}));
}

TEST(Channels, GreyImagesHaveThreeEqualOnesAndComeBackUnchanged) {
  const ImageSplits grey = in_grey(both(std::make_shared<Colours>(20)));
  const ImageSplits three = with_channels(grey, 3);
  const std::vector<uint8_t> one = image_of(*grey.train, 7), all = image_of(*three.train, 7);
  for (size_t c = 0; c < 3; ++c)
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + ptrdiff_t(c * 1024)));
  EXPECT_EQ(image_of(*in_grey(three).train, 7), one);
  EXPECT_EQ(with_channels(grey, 1).train, grey.train);
  EXPECT_EQ(in_grey(grey).train, grey.train);
  EXPECT_NE(grey.train->contents(), three.train->contents());
  expect_error([&] { with_channels(three, 1); }, {"in memory are in colour", "--grey"});
  const ImageSplits many = in_grey(both(std::make_shared<MemorySet>(20)));  // CIFAR-10's statistics
  expect_error([&] { with_channels(many, 1); }, {"in memory has three means or deviations"});
}

// A batch of grey images is one of the planes that a network of three channels is fed with.
TEST(Channels, OneChannelIsFedAsEachOfThree) {
  const ImageSplits grey = in_grey(both(std::make_shared<Colours>(20)));
  const AugmentOptions augment{.flip = true, .erase = 0.5, .mixup = 0.4};
  Loader one(grey.train, {.batch = 4, .augment = augment}),
      three(with_channels(grey, 3).train, {.batch = 4, .augment = augment});
  const Tensor a = Tensor::host({.shape = {4, 1, 32, 32}}), b = Tensor::host({.shape = {4, 3, 32, 32}});
  one.fill_images({1, 2}, 0, a), three.fill_images({1, 2}, 0, b);
  for (int64_t n = 0; n < 4; ++n) {
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_EQ(std::memcmp(a.data<float>() + n * 1024, b.data<float>() + (3 * n + c) * 1024, 4096), 0) << n;
  }
}

// torchvision's saturation leaves one channel as it is, and its contrast takes the mean of that channel.
TEST(Channels, TrivialAugmentChangesOneAsEachOfThree) {
  const Shape grey{1, 9, 11}, colour{3, 9, 11};
  std::vector<uint8_t> one(99);
  for (size_t i = 0; i < one.size(); ++i) one[i] = uint8_t(i * i % 256);
  std::vector<uint8_t> three = one;
  for (int copy = 0; copy < 2; ++copy) three.insert(three.end(), one.begin(), one.end());
  for (const ImageOperation& operation : image_operations()) {
    const double strength = operation.strength ? operation.strength(20) : 0;
    std::vector<uint8_t> got(one.size()), of_three(three.size());
    operation.carry_out(one, grey, strength, got);
    operation.carry_out(three, colour, strength, of_three);
    of_three.resize(one.size());
    const std::string name = operation.name;
    if (name == "Color")
      EXPECT_EQ(got, one);
    else if (name == "Contrast")  // of three the mean is that of their greys, which are rounded down
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], of_three[i], 2);
    else
      EXPECT_EQ(got, of_three) << name;
  }
}

}  // namespace
}  // namespace antichain
