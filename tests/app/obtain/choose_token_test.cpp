// Tests which token follows: the likeliest, or one that is drawn by its share.
#include "app/obtain/choose_token.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/expect_error.h"

namespace antichain {
namespace {

constexpr std::array<float, 4> logits = {1.0f, 3.0f, 3.0f, 2.0f};

// Returns how often each token is drawn at 4,000 positions.
std::array<double, 4> shares(const SamplingOptions& options) {
  std::array<double, 4> counts{};
  for (int64_t position = 0; position < 4000; ++position)
    counts[size_t(choose_token(logits, options, position))] += 1.0 / 4000;
  return counts;
}

TEST(ChooseToken, TheLikeliestIsTheFirstOfEquals) {
  for (int64_t position = 0; position < 9; ++position)
    EXPECT_EQ(choose_token(logits, {.seed = uint64_t(position)}, position), 1);
}

// A share of 4,000 draws is off by less than 4 · sqrt(0.25 / 4000) = 0.032 in all but one of 10,000 tests.
TEST(ChooseToken, SharesAreThoseOfSoftmax) {
  for (const double temperature : {0.5, 1.0, 4.0}) {
    const std::array<double, 4> found = shares({.temperature = temperature, .seed = 5});
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit / temperature);
    for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(found[k], std::exp(logits[k] / temperature) / sum, 0.032) << k;
  }
}

TEST(ChooseToken, OthersThanTheLikeliestAreNotDrawn) {
  const std::array<double, 4> two = shares({.temperature = 2, .top_k = 2, .seed = 6}),
                              three = shares({.temperature = 100, .top_k = 3, .seed = 6});
  EXPECT_EQ(two[0] + two[3], 0);
  EXPECT_NEAR(two[1], 0.5, 0.032);
  EXPECT_EQ(three[0], 0);
  EXPECT_GT(three[3], 0.3);
  EXPECT_NEAR(shares({.temperature = 2, .top_k = 1})[1], 1, 1e-9) << "of equals the first";
}

TEST(ChooseToken, NothingFollowsFromWhatIsNotFinite) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::array<float, 2>& bad : {std::array{1.0f, nan}, {nan, 1.0f}, {inf, 0.0f}, {-inf, -inf}})
    for (const double temperature : {0.0, 1.0})
      expect_error([&] { choose_token(bad, {.temperature = temperature}, 7); },
                   {"behind token 7", "not finite"});
  EXPECT_EQ(choose_token(std::array{-inf, 0.0f}, {.temperature = 1}, 7), 1) << "one that never follows";
}

TEST(ChooseToken, ADrawFollowsFromSeedAndPosition) {
  int differ = 0;
  for (int64_t position = 0; position < 100; ++position) {
    const SamplingOptions one{.temperature = 9, .seed = 1}, other{.temperature = 9, .seed = 2};
    EXPECT_EQ(choose_token(logits, one, position), choose_token(logits, one, position));
    differ += choose_token(logits, one, position) != choose_token(logits, other, position);
  }
  EXPECT_GT(differ, 30);
}

}  // namespace
}  // namespace antichain
