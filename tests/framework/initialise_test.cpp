// Tests initial values: their distributions, and that they are a function of seed and name.
#include "framework/initialise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace antichain {
namespace {

Tensor drawn(Initialiser init, uint64_t seed = 1, std::string_view name = "w", int64_t count = 100'000) {
  const Tensor t = Tensor::host({{count}});
  initialise(t, init, seed, name);
  return t;
}

TEST(Initialise, MomentsAreThoseOfTheDistribution) {
  auto moments = [](const Tensor& t) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < t.elements(); ++i)
      sum += t.data<float>()[i], squares += std::pow(t.data<float>()[i], 2);
    return std::pair(sum / double(t.elements()), std::sqrt(squares / double(t.elements())));
  };
  // Standard errors at 100,000 samples are about 0.003 of the deviation; the bounds are four of them.
  const auto [normal_mean, normal_rms] = moments(drawn(Initialiser::normal(0.5)));
  EXPECT_NEAR(normal_mean, 0, 0.0065);
  EXPECT_NEAR(normal_rms, 0.5, 0.0065);
  const auto [uniform_mean, uniform_rms] = moments(drawn(Initialiser::uniform(0.3)));
  EXPECT_NEAR(uniform_mean, 0, 0.003);
  EXPECT_NEAR(uniform_rms, 0.3 / std::sqrt(3), 0.002);
  EXPECT_FLOAT_EQ(Initialiser::kaiming_normal_fan_out(32).a, 0.25f);
  EXPECT_FLOAT_EQ(Initialiser::kaiming_uniform_fan_in(16).a, 0.25f);
}

TEST(Initialise, IsAFunctionOfSeedAndName) {
  const auto first = [](const Tensor& t) { return t.data<float>()[0]; };
  EXPECT_EQ(first(drawn(Initialiser::normal(1), 1, "a")), first(drawn(Initialiser::normal(1), 1, "a", 3)));
  EXPECT_NE(first(drawn(Initialiser::normal(1), 1, "a")), first(drawn(Initialiser::normal(1), 1, "b")));
  EXPECT_NE(first(drawn(Initialiser::normal(1), 1, "a")), first(drawn(Initialiser::normal(1), 2, "a")));
}

}  // namespace
}  // namespace antichain
