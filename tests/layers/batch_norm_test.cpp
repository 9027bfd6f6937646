// Tests how exact batch norm is. Sums over a channel are formed in float chains of at most 16 terms and
// folded in double, so their error must not grow with the number of terms. The loops for every instruction
// set must give the same bits.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/random.h"
#include "layers/batch_norm.h"
#include "layers/cpu/batch_norm_loops.h"
#include "tests/cpu_engine.h"
#include "tests/layers/op_harness.h"
#include "tests/layers/reference/reference.h"

namespace antichain::harness {
namespace {

constexpr double ulp = 0x1p-24;  // of float32, half the distance to the next number

OpCase norm(Shape x, BatchNormOptions options = {}) {
  return {"norm", std::make_shared<BatchNorm>(options), {x}};
}

// Normal numbers about `mean`, as float32.
Values normal_values(const OpCase& c, double mean) {
  Values values = draw(c);
  const Philox random(3);
  for (size_t i = 0; i < values.x[0].size(); ++i) {
    const auto w = random.words(i);
    const double radius = std::sqrt(-2 * std::log(Philox::uniform(w[0]) + 1e-9));
    values.x[0][i] = float(mean + radius * std::cos(6.283185307 * Philox::uniform(w[1])));
    values.dy[i] = float(radius * std::sin(6.283185307 * Philox::uniform(w[1])));
  }
  return values;
}

class Exactness : public ::testing::TestWithParam<std::tuple<Shape, Layout, double>> {};

// 32768 terms a channel: one float chain would be off by some 100 ulps.
TEST_P(Exactness, StatisticsAndSumsAreNearlyCorrectlyRounded) {
  const auto [shape, layout, mean] = GetParam();
  const OpCase c = norm(shape);
  const Values values = normal_values(c, mean);
  const Results exact = run(reference::backend(), c, values),
                ours = run(cpu_engine(), c, values, {.offered = layout});
  const int64_t n = shape[0] * shape[2] * shape[3];
  for (size_t k = 0; k < size_t(shape[1]); ++k) {
    // Mean and variance are rounded once; the deviations that they are made of, relative to themselves.
    EXPECT_NEAR(ours.statistics[0][k], exact.statistics[0][k],
                ulp * (std::abs(exact.statistics[0][k]) + 0.1));
    EXPECT_NEAR(ours.statistics[1][k], exact.statistics[1][k], 2 * ulp * exact.statistics[1][k]);
    // Chains of 16 terms of size 1 are off by about 4 ulps each, at random: 4 √(n / 64) ulps in all, and the
    // result's own rounding. A correctly rounded double sum of the products as float32 rounds them has √n.
    const double random_walk = 4 * std::sqrt(double(n));
    EXPECT_NEAR(ours.dw[1][k], exact.dw[1][k], ulp * (random_walk + std::abs(exact.dw[1][k])));
    EXPECT_NEAR(ours.dw[0][k], exact.dw[0][k], ulp * (random_walk + std::abs(exact.dw[0][k])));
  }
}

INSTANTIATE_TEST_SUITE_P(BatchNorm, Exactness,
                         ::testing::Combine(::testing::Values(Shape{32, 32, 32, 32}, Shape{512, 16, 8, 8},
                                                              Shape{8, 20, 57, 55}),
                                            ::testing::Values(Layout::plain, Layout::nChw8c, Layout::nChw16c),
                                            ::testing::Values(0.0, 100.0)));

// The mean rounded to float32 is off by up to 4e-6 at 100; that must not shift all of y by as much.
TEST(BatchNorm, RoundingTheMeanDoesNotShiftTheOutput) {
  const OpCase c = norm({16, 16, 16, 16});
  const Values values = normal_values(c, 100);
  const Results exact = run(reference::backend(), c, values);
  const Results ours = run(cpu_engine(), c, values, {.offered = Layout::nChw16c});
  for (int64_t channel = 0; channel < 16; ++channel) {
    double off = 0;
    for (int64_t n = 0; n < 16; ++n)
      for (int64_t p = 0; p < 256; ++p)
        off += ours.y[size_t((n * 16 + channel) * 256 + p)] - exact.y[size_t((n * 16 + channel) * 256 + p)];
    // Each y is off by its own roundings, some 1e-7 at random; their mean is √4096 times smaller.
    EXPECT_LT(std::abs(off / 4096), 3e-8) << channel;
  }
}

// A channel of one value: variance 0, and not a rounding error's size of it.
TEST(BatchNorm, ConstantChannelsHaveNoVariance) {
  const OpCase c = norm({4, 16, 9, 7});
  Values values = draw(c);
  for (double& v : values.x[0]) v = float(0.3);
  const Results ours = run(cpu_engine(), c, values, {.offered = Layout::nChw16c});
  for (const double v : ours.statistics[1]) EXPECT_EQ(v, 0);
  for (const double m : ours.statistics[0]) EXPECT_EQ(m, float(0.3));
}

constexpr cpu::After afters[] = {cpu::After::nothing, cpu::After::relu, cpu::After::relu6,
                                 cpu::After::hardswish, cpu::After::silu};

// Returns everything that the loops compute from one random set of planes.
template <class T>
std::vector<double> everything(const cpu::BatchNormLoops<T>& loops, int block, int64_t pixels) {
  const cpu::Planes planes{.images = 5, .stride = 3 * pixels * block, .size = pixels * block, .block = block};
  const size_t all = size_t(planes.images * planes.stride);
  const Philox random(9);
  std::vector<T> x(all), dy(all), residual(all), y(all), dx(all, T(1.5f)), dresidual(all, T(0.25f));
  for (size_t i = 0; i < all; ++i) {
    const auto w = random.words(i);
    x[i] = T(Philox::uniform(w[0]) + 3), dy[i] = T(Philox::uniform(w[1]) - 0.5f),
    residual[i] = T(Philox::uniform(w[2]) - 0.5f);
  }
  cpu::Normal normal;
  cpu::Gradient g;
  for (int l = 0; l < 16; ++l) {
    normal.mean.at[l] = 3.4f, normal.scale.at[l] = 1.0f + float(l % block), normal.shift.at[l] = 0.1f;
    g.a.at[l] = 0.3f, g.b.at[l] = 0.7f, g.c.at[l] = 0.01f * float(l % block);
  }
  double mean[16], squares[16], sum[16], product[16];
  std::vector<double> numbers;
  const auto take = [&](const auto& values, size_t count) {
    numbers.insert(numbers.end(), &values[0], &values[0] + count);
  };
  loops.moments(x.data(), planes, mean, squares);
  take(mean, size_t(block)), take(squares, size_t(block));
  for (const T* r : {static_cast<const T*>(nullptr), static_cast<const T*>(residual.data())})
    for (const cpu::After after : afters) {
      if (r && after != cpu::After::nothing && after != cpu::After::relu) continue;
      loops.normalise({x.data(), r, y.data(), after}, planes, normal);
      take(y, all);
    }
  for (cpu::Mask mask : {cpu::Mask::none, cpu::Mask::recompute, cpu::Mask::read})
    for (const cpu::After after : afters)
      for (bool add : {false, true}) {
        const bool recomputes = mask == cpu::Mask::recompute;
        if (recomputes == (after == cpu::After::nothing)) continue;
        const cpu::BackwardPass<T> pass{.x = x.data(),
                                        .dy = dy.data(),
                                        .y = y.data(),
                                        .dx = dx.data(),
                                        .dresidual = dresidual.data(),
                                        .add_dx = add,
                                        .add_dresidual = add && !recomputes,
                                        .mask = mask,
                                        .after = after};
        loops.sums(pass, planes, normal, sum, product);
        loops.gradient(pass, planes, normal, g);
        take(sum, size_t(block)), take(product, size_t(block)), take(dx, all), take(dresidual, all);
      }
  return numbers;
}

template <class T>
void expect_same_bits() {
  const auto& [baseline, avx2, avx512] = cpu::every<cpu::BatchNormLoops<T>>();
  for (int block : {1, 8, 16})
    for (int64_t pixels : {1, 4, 15, 64, 1025}) {
      const std::vector<double> expected = everything(*baseline, block, pixels);
      if (__builtin_cpu_supports("avx2")) {
        EXPECT_EQ(everything(*avx2, block, pixels), expected) << block << " " << pixels;
      }
      if (cpu::has_avx512()) {
        EXPECT_EQ(everything(*avx512, block, pixels), expected) << block << " " << pixels;
      }
    }
}

TEST(BatchNorm, EveryInstructionSetGivesTheSameBits) { expect_same_bits<float>(); }
TEST(BatchNorm, EveryInstructionSetGivesTheSameBitsInBf16) { expect_same_bits<Bf16>(); }

}  // namespace
}  // namespace antichain::harness
