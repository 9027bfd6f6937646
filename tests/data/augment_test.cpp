// Tests crops, flips, erasing and normalising of an image, and what their draws depend on.
#include "data/augment.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <vector>

#include "data/normaliser.h"

namespace antichain {
namespace {

// 3 x 4 x 4, pixel (c, y, x) = 100·c + 10·y + x + 1, so that each names its place.
const Shape small{3, 4, 4};
std::vector<uint8_t> numbered() {
  std::vector<uint8_t> pixels;
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 4; ++x) pixels.push_back(uint8_t(80 * c + 10 * y + x + 1));
  return pixels;
}

// With mean 0 and deviation 1/255 a normalised pixel is its byte again (exact: bytes are small integers, and
// byte / 255 · 255 rounds back to the byte; compared within 1e-4).
std::vector<float> apply(const Augmentation& draw) {
  const float unit = 1.0f / 255.0f;
  std::vector<float> out(48);
  Normaliser({.mean = {0, 0, 0}, .deviation = {unit, unit, unit}})(numbered(), small, draw, out);
  return out;
}

void expect_channel_0(const std::vector<float>& out, const std::vector<float>& expected) {
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(out[i], expected[i], 1e-4) << "at " << i;
}

TEST(Augment, NothingDrawnChangesNothing) {
  expect_channel_0(apply({}), {1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34});
}

TEST(Augment, TheCropMovesTheWindowAndPadsWithBlack) {
  expect_channel_0(apply({.down = 1, .right = -2}), {0, 0, 11, 12, 0, 0, 21, 22, 0, 0, 31, 32, 0, 0, 0, 0});
}

TEST(Augment, AMirrorContinuesTheImageWithoutRepeatingItsEdge) {
  expect_channel_0(apply({.down = 1, .right = -2, .reflects = true}),
                   {13, 12, 11, 12, 23, 22, 21, 22, 33, 32, 31, 32, 23, 22, 21, 22});
  // Every move is compared with torchvision's rule: numpy.pad(mode="reflect") of 0 1 2 3 by 3.
  constexpr int padded[] = {3, 2, 1, 0, 1, 2, 3, 2, 1, 0};
  for (int at = -3; at < 7; ++at) EXPECT_EQ(source(at, 4, true), padded[at + 3]) << at;
}

TEST(Augment, ErasesARectangleOfTheFinishedImageInAllChannels) {
  std::vector<float> out = apply({.flip = true, .erased = {.top = 1, .left = 2, .height = 3, .width = 2}});
  expect_channel_0(out, {4, 3, 2, 1, 14, 13, 0, 0, 24, 23, 0, 0, 34, 33, 0, 0});
  EXPECT_NEAR(out[16 + 4], 94, 1e-4);
  EXPECT_EQ(out[16 + 6], 0);
  EXPECT_EQ(out[32 + 15], 0);
  Normaliser()(numbered(), small, {.erased = {0, 0, 4, 4}}, out);
  EXPECT_EQ(out[5], 0) << "after normalising, not before";
}

TEST(Augment, TheFlipComesAfterTheCrop) {
  expect_channel_0(apply({.flip = true}), {4, 3, 2, 1, 14, 13, 12, 11, 24, 23, 22, 21, 34, 33, 32, 31});
  expect_channel_0(apply({.down = 1, .right = -2, .flip = true}),
                   {12, 11, 0, 0, 22, 21, 0, 0, 32, 31, 0, 0, 0, 0, 0, 0});
}

TEST(Augment, ChannelsMoveTogether) {
  const std::vector<float> out = apply({.down = -1, .right = 3});
  EXPECT_NEAR(out[4], 4, 1e-4);
  EXPECT_NEAR(out[16 + 4], 84, 1e-4);
  EXPECT_NEAR(out[32 + 4], 164, 1e-4);
}

TEST(Augment, NormalisesByTheChannel) {
  std::vector<float> out(48);
  Normaliser()(numbered(), small, {.down = 4}, out);  // all padding
  // (0 − mean) / deviation; float rounding only.
  EXPECT_FLOAT_EQ(out[0], -0.4914f / 0.2470f);
  EXPECT_FLOAT_EQ(out[16], -0.4822f / 0.2435f);
  EXPECT_FLOAT_EQ(out[32], -0.4465f / 0.2616f);
  Normaliser()(numbered(), small, {}, out);
  EXPECT_FLOAT_EQ(out[16], (81 / 255.0f - 0.4822f) / 0.2435f);
}

TEST(Augment, DrawsDependOnSeedEpochAndSampleAlone) {
  const auto draw = [](uint64_t seed, int64_t epoch, int64_t sample) {
    const Augmentation a = draw_augmentation({}, {3, 32, 32}, seed, epoch, sample);
    return std::tuple(a.down, a.right, a.flip);
  };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  int same = 0;
  for (int64_t i = 0; i < 100; ++i) same += draw(1, 2, i) == draw(1, 3, i);
  for (int64_t i = 0; i < 100; ++i) same += draw(1, 2, i) == draw(2, 2, i);
  EXPECT_LT(same, 10);  // of 200, with 162 possible draws: 1.2 by chance
}

TEST(Augment, EveryPlaceIsDrawn) {
  std::set<std::tuple<int, int, bool>> seen;
  for (int64_t i = 0; i < 5000; ++i) {
    const Augmentation a = draw_augmentation({}, {3, 32, 32}, 7, 0, i);
    ASSERT_LE(std::abs(a.down), 4);
    ASSERT_LE(std::abs(a.right), 4);
    seen.insert({a.down, a.right, a.flip});
  }
  EXPECT_EQ(seen.size(), 9u * 9 * 2);  // one would be missed with probability 162 · (161/162)^5000 < 1e-10
}

TEST(Augment, WhatIsNotWantedIsNotDrawnAndShiftsNoOtherDraw) {
  const AugmentOptions all{.crop = Crop::reflect, .flip = true, .erase = 0.5};
  for (int64_t i = 0; i < 500; ++i) {
    const Augmentation a = draw_augmentation({}, {3, 32, 32}, 7, 2, i);
    const Augmentation b = draw_augmentation(all, {3, 32, 32}, 7, 2, i);
    EXPECT_EQ(std::tuple(a.down, a.right, a.flip), std::tuple(b.down, b.right, b.flip));
    EXPECT_TRUE(b.reflects && !a.reflects && a.erased.empty());
    const Augmentation still = draw_augmentation({.crop = Crop::none, .flip = true}, {3, 32, 32}, 7, 2, i);
    EXPECT_EQ(std::tuple(still.down, still.right, still.flip), std::tuple(0, 0, a.flip));
    const Augmentation straight = draw_augmentation({.flip = false}, {3, 32, 32}, 7, 2, i);
    EXPECT_EQ(std::tuple(straight.down, straight.right, straight.flip), std::tuple(a.down, a.right, false));
  }
}

// The means are those of 100,000 calls of torchvision 0.14's RandomErasing.get_params with scale 0.02 … 0.33
// and ratio 0.3 … 3.3. One draw deviates by 6.2, 7.0 and 101 pixels (height, width, area), so the means of
// our 12,500 and of theirs differ by 0.06, 0.07 and 0.96. Tolerances are four times that.
TEST(Augment, ErasesRectanglesOfTorchvisionsDistribution) {
  struct Means {
    Shape chw;
    double height, width, area;
  };
  for (const Means& right :
       {Means{{3, 32, 32}, 13.569, 13.612, 178.43}, Means{{3, 24, 48}, 12.739, 14.945, 188.36}}) {
    const int64_t images = 50000;
    double erased = 0, height = 0, width = 0, area = 0, top = 0, left = 0;
    for (int64_t i = 0; i < images; ++i) {
      const Box b = draw_augmentation({.erase = 0.25}, right.chw, 3, 0, i).erased;
      if (b.empty()) continue;
      ASSERT_TRUE(b.top >= 0 && b.left >= 0 && b.top + b.height <= right.chw[1] &&
                  b.left + b.width <= right.chw[2]);
      ++erased;
      height += b.height, width += b.width, area += double(b.height) * b.width;
      top += (b.top + b.height / 2.0) / double(right.chw[1]);
      left += (b.left + b.width / 2.0) / double(right.chw[2]);
    }
    EXPECT_NEAR(erased / double(images), 0.25, 0.008);  // four standard errors, √(0.25 · 0.75 / 50,000)
    EXPECT_NEAR(height / erased, right.height, 0.24);
    EXPECT_NEAR(width / erased, right.width, 0.28);
    EXPECT_NEAR(area / erased, right.area, 3.9);
    EXPECT_NEAR(top / erased, 0.5, 0.01);  // the middle lies in the middle; at most 0.29 / √12,500 · 4
    EXPECT_NEAR(left / erased, 0.5, 0.01);
  }
}

}  // namespace
}  // namespace antichain
