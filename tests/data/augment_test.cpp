#include "data/augment.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <vector>

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
    const Augmentation a = draw_augmentation(seed, epoch, sample);
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
    const Augmentation a = draw_augmentation(7, 0, i);
    ASSERT_LE(std::abs(a.down), 4);
    ASSERT_LE(std::abs(a.right), 4);
    seen.insert({a.down, a.right, a.flip});
  }
  EXPECT_EQ(seen.size(), 9u * 9 * 2);  // one would be missed with probability 162 · (161/162)^5000 < 1e-10
}

}  // namespace
}  // namespace antichain
