// Tests how images are mixed, and with which shares.
#include "data/mix.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace antichain {
namespace {

const Shape cifar{3, 32, 32};

TEST(Mix, NothingIsMixedUnlessAskedFor) {
  EXPECT_FALSE(mixes({}));
  const Mix mix = draw_mix({}, cifar, 1, 2, 3);
  EXPECT_FALSE(mix.mixes());
  EXPECT_EQ(mix.own, 1);
  EXPECT_EQ(mixed(mix, 3, 4, 0.3f, 7), 0.3f);
}

TEST(Mix, MixupBlendsWholeImages) {
  const std::vector<float> own(12, 2), other(12, -1);
  std::vector<float> out(12);
  mix_images({.own = 0.75f, .other = 0.25f}, {3, 2, 2}, own, other, out);
  for (const float v : out) EXPECT_EQ(v, 1.25f);
}

TEST(Mix, CutmixPastesARectangleInAllChannels) {
  std::vector<float> own(3 * 4 * 5), other(own.size()), out(own.size());
  std::iota(own.begin(), own.end(), 0);
  std::iota(other.begin(), other.end(), 100);
  const Mix mix{.own = 0.7f, .other = 0.3f, .pasted = {.top = 1, .left = 2, .height = 2, .width = 3}};
  mix_images(mix, {3, 4, 5}, own, other, out);
  for (size_t i = 0; i < out.size(); ++i) {
    const int y = int(i / 5 % 4), x = int(i % 5);
    EXPECT_EQ(out[i], y >= 1 && y <= 2 && x >= 2 ? other[i] : own[i]) << i;
    EXPECT_EQ(out[i], mixed(mix, y, x, own[i], other[i])) << i;
  }
}

TEST(Mix, DrawsDependOnSeedEpochAndBatchAlone) {
  const AugmentOptions options{.mixup = 0.4};
  EXPECT_EQ(draw_mix(options, cifar, 1, 2, 3).own, draw_mix(options, cifar, 1, 2, 3).own);
  EXPECT_NE(draw_mix(options, cifar, 1, 2, 3).own, draw_mix(options, cifar, 1, 2, 4).own);
  EXPECT_NE(draw_mix(options, cifar, 1, 2, 3).own, draw_mix(options, cifar, 1, 3, 3).own);
  EXPECT_NE(draw_mix(options, cifar, 1, 2, 3).own, draw_mix(options, cifar, 2, 2, 3).own);
}

// Beta(α, α) has mean 1/2 and variance 1 / (4 · (2α + 1)). Of 40,000 draws the mean deviates by at most
// 0.0025 (the standard deviation is below 1/2), and the variance by less; the tolerances are four times
// that.
TEST(Mix, SharesOfMixupAreFromTheBetaDistribution) {
  for (const double alpha : {0.01, 0.2, 1.0, 2.5, 30.0}) {
    const int draws = 40000;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
      const Mix mix = draw_mix({.mixup = alpha}, cifar, 5, 1, i);
      ASSERT_TRUE(mix.own >= 0 && mix.own <= 1) << alpha;
      EXPECT_NEAR(mix.own + mix.other, 1, 1e-7);  // each is rounded to float
      EXPECT_TRUE(mix.pasted.empty());
      sum += mix.own;
      squares += mix.own * mix.own;
    }
    const double mean = sum / draws;
    EXPECT_NEAR(mean, 0.5, 0.01) << alpha;
    EXPECT_NEAR(squares / draws - mean * mean, 1 / (4 * (2 * alpha + 1)), 0.01) << alpha;
  }
}

// With α = 1 the share is uniform: the tenths of 40,000 draws hold 4,000 each, √3,600 = 60 is one deviation.
TEST(Mix, SharesOfOneAreUniform) {
  std::vector<int> tenths(10);
  for (int i = 0; i < 40000; ++i)
    ++tenths[size_t(std::min(9.f, draw_mix({.mixup = 1}, cifar, 6, 0, i).own * 10))];
  for (const int count : tenths) EXPECT_NEAR(count, 4000, 240);
}

// The labels' shares are the pixels'. torchvision's rule drew an own share of 0.7004 and a
// height of 16.651 on average over 400,000 draws of α = 1 on 32 x 32 images. One draw deviates by 0.183 and
// 6.43, so the means of 40,000 deviate by 0.0009 and 0.032, and the tolerances are four times that.
TEST(Mix, CutmixSharesLabelsAsThePixels) {
  double own = 0, height = 0;
  for (int i = 0; i < 40000; ++i) {
    const Mix mix = draw_mix({.cutmix = 1}, cifar, 5, 1, i);
    const Box& b = mix.pasted;
    ASSERT_TRUE(b.top >= 0 && b.left >= 0 && b.top + b.height <= 32 && b.left + b.width <= 32);
    EXPECT_EQ(mix.own, float(1 - b.height * b.width / 1024.0));
    EXPECT_EQ(mix.mixes(), !b.empty());
    own += mix.own;
    height += b.height;
  }
  EXPECT_NEAR(own / 40000, 0.7004, 0.0037);
  EXPECT_NEAR(height / 40000, 16.651, 0.13);
}

TEST(Mix, BothTakeTurnsAtRandom) {
  int pasted = 0;
  const int draws = 10000;
  // Where half · 32 < 1 nothing is pasted: λ > 1 − 1/256, once in 256 draws of α = 1.
  for (int i = 0; i < draws; ++i)
    pasted += !draw_mix({.mixup = 1, .cutmix = 1}, cifar, 8, 0, i).pasted.empty();
  EXPECT_NEAR(pasted, draws / 2 * 255.0 / 256, 200);  // four deviations of √2,500
}

}  // namespace
}  // namespace antichain
