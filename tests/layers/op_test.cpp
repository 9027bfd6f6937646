// Tests every operator on every engine, on a table of awkward cases, against the double-precision reference.
// The reference is tested against numeric gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <thread>
#include <tuple>

#include "framework/bf16.h"
#include "framework/in_place.h"
#include "framework/random.h"
#include "layers/conv2d.h"
#include "tests/layers/engines.h"
#include "tests/layers/op_cases.h"
#include "tests/layers/op_harness.h"
#include "tests/layers/reference/reference.h"

namespace antichain::harness {
namespace {

class Reference : public ::testing::TestWithParam<OpCase> {};

// Moves every input and parameter along one random direction, and compares the slope with the gradients'.
TEST_P(Reference, MatchesNumericGradients) {
  const OpCase& c = GetParam();
  if (c.op->str().find("spectral_norm") != std::string::npos)
    GTEST_SKIP() << "its singular vectors are constants for the gradient";
  const Values values = draw(c);
  const Results results = run(reference::backend(), c, values);
  for (uint64_t direction = 0; direction < 4; ++direction) {
    const Philox random(mix(99, direction));
    // Truncation is h², cancellation 1e-16 / h; and h is far below the distance of inputs from ties and
    // kinks.
    const double h = 1e-6;
    Values ahead = values, behind = values;
    double slope = 0, terms = 1e-3;
    uint64_t counter = 0;
    const auto move = [&](Numbers& up, Numbers& down, const Numbers& gradient) {
      ASSERT_EQ(gradient.size(), up.size());
      for (size_t i = 0; i < up.size(); ++i) {
        const double u = 2 * Philox::uniform(random.words(counter++)[0]) - 1;
        up[i] += h * u;
        down[i] -= h * u;
        slope += u * gradient[i];
        terms += std::abs(u * gradient[i]);
      }
    };
    for (size_t i = 0, j = 0; i < values.x.size(); ++i)
      if (!is_label(c, i)) move(ahead.x[i], behind.x[i], results.dx[j++]);
    for (size_t i = 0; i < values.params.size(); ++i) move(ahead.params[i], behind.params[i], results.dw[i]);
    const double up = objective(c, values, run(reference::backend(), c, ahead).y);
    const double down = objective(c, values, run(reference::backend(), c, behind).y);
    EXPECT_NEAR((up - down) / (2 * h), slope, 1e-6 * terms) << "direction " << direction;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Reference, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

class Operator : public ::testing::TestWithParam<std::tuple<Engine, OpCase>> {
 protected:
  void SetUp() override {
    std::string why;
    engine_ = find(std::get<0>(GetParam()), why);
    if (!engine_) GTEST_SKIP() << why;
    if (!carries_out(*engine_, which())) GTEST_SKIP() << "does not fuse this";
    why = std::get<0>(GetParam()).lacks(which());
    if (!why.empty()) GTEST_SKIP() << why;
    values_ = draw(which());
    if (precision() == Precision::bf16) values_ = rounded_to_bf16(values_);
    if (which().fused) keep_off_the_kink();
  }

  // A sum that is rounded before the bias is added, or whose factors are cut off, may come out on the other
  // side of ReLU's kink, so we test no gradient there.
  void keep_off_the_kink() {
    const Numbers y = harness::run(reference::backend(), without_relu(which()), values_).y;
    double largest = 0;
    for (const double v : y) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < y.size(); ++i)
      if (std::abs(y[i]) < 2 * (stored() + multiplication()) * largest) values_.dy[i] = 0;
  }

  const OpCase& which() const { return std::get<1>(GetParam()); }
  const std::vector<Layout>& layouts() const { return std::get<0>(GetParam()).layouts; }
  Layout last_layout() const { return layouts().back(); }
  const Backend& engine() const { return *engine_; }

  // The tolerance is relative to the largest number of a tensor of sums of products. An error that all
  // products have, as where factors are cut off, is one of the sum; the rest has random sign. So twice one
  // product's error is much for a sum of thousands.
  double tolerance() const {
    constexpr std::string_view products[] = {"conv2d", "conv_transpose2d", "linear"};
    const bool multiplies = std::ranges::find(products, which().op->type()) != std::end(products);
    return which().tolerance + (multiplies ? 2 * multiplication() : 0);
  }

  double multiplication() const { return std::get<0>(GetParam()).multiplication; }
  Precision precision() const { return std::get<0>(GetParam()).precision; }
  // Products of bf16 numbers are float32 numbers, and are summed as such, so sums are as exact as in float32.
  // A result that is stored in bf16 has one rounding to 8 bits, which costs up to 2^-8 of it; weight
  // gradients have none.
  double stored() const { return precision() == Precision::bf16 ? 0x1p-8 : 0; }
  // Outputs have two roundings where the bias comes after the first.
  double stored_y() const {
    const auto* conv = dynamic_cast<const Conv2d*>(which().op.get());
    const bool twice = conv && conv->options.bias && std::get<0>(GetParam()).rounds_before_bias;
    return (twice ? 2 : which().output_roundings) * stored();
  }

  // A convolution's weight gradient may have the one rounding of a micro-batch's sum.
  double stored_dw() const {
    const bool rounds = std::get<0>(GetParam()).rounds_weight_gradients;
    const std::string_view type = which().op->type();  // a computed weight may be a convolution's
    return rounds && (type.starts_with("conv") || type == "computed") ? stored() : 0;
  }

  float as_stored(float v) const { return precision() == Precision::bf16 ? float(Bf16(v)) : v; }

  Results run(Ask ask = {}) const {
    ask.precision = precision();
    return harness::run(engine(), which(), values_, ask);
  }

  Values values_;

 private:
  const Backend* engine_ = nullptr;
};

TEST_P(Operator, EngineMatchesReference) {
  const OpCase& c = which();
  const Results expected = harness::run(reference::backend(), c, values_);
  for (Layout offered : layouts()) {
    SCOPED_TRACE(name_of(offered));
    const Results results = run({.offered = offered});
    EXPECT_LE(difference(results.y, expected.y), tolerance() + stored_y());
    EXPECT_LE(difference(results.evaluated, expected.evaluated), tolerance() + stored_y());
    for (size_t i = 0; i < expected.dx.size(); ++i)
      EXPECT_LE(difference(results.dx[i], expected.dx[i]), tolerance() + c.input_roundings * stored())
          << "dx " << i;
    for (size_t i = 0; i < expected.dw.size(); ++i)
      EXPECT_LE(difference(results.dw[i], expected.dw[i]), tolerance() + stored_dw()) << "dw " << i;
    for (size_t i = 0; i < expected.statistics.size(); ++i)
      EXPECT_LE(difference(results.statistics[i], expected.statistics[i]), tolerance()) << "statistics " << i;
    for (size_t i = 0; i < expected.buffers.size(); ++i)
      EXPECT_LE(difference(results.buffers[i], expected.buffers[i]), tolerance()) << "buffer " << i;
  }
}

// What TF32's factors cost is within the tolerance of the engine that has them.
TEST(Tf32, CutsOffWithinTheBoundOfItsTests) {
  const auto cut_off = [](Numbers& numbers) {
    for (double& v : numbers) v = std::bit_cast<float>(std::bit_cast<uint32_t>(float(v)) & tf32_bits);
  };
  int compared = 0;
  for (const OpCase& c : cases()) {
    const std::string_view type = c.op->type();
    if ((!type.starts_with("conv") && type != "linear") || type == "concat") continue;
    SCOPED_TRACE(c.name);
    Values whole = draw(c);
    const auto run_reference = [&](const OpCase& of, const Values& values) {
      return harness::run(reference::backend(), of, values);
    };
    if (c.fused) {  // as Operator does
      const Numbers y = run_reference(without_relu(c), whole).y;
      const double largest = std::abs(*std::ranges::max_element(y, {}, [](double v) { return std::abs(v); }));
      for (size_t i = 0; i < y.size(); ++i)
        if (std::abs(y[i]) < 2 * tf32_product * largest) whole.dy[i] = 0;
    }
    Values cut = whole;
    cut_off(cut.x[0]), cut_off(cut.params[0]), cut_off(cut.dy);
    const Results exact = run_reference(c, whole), results = run_reference(c, cut);
    const double bound = c.tolerance + 2 * tf32_product;
    EXPECT_LE(difference(results.y, exact.y), bound);
    EXPECT_LE(difference(results.dx[0], exact.dx[0]), bound);
    EXPECT_LE(difference(results.dw[0], exact.dw[0]), bound);
    compared += difference(results.y, exact.y) > 0;
  }
  EXPECT_GT(compared, 20);
}

TEST_P(Operator, HalvesAskedSeparatelyGiveTheSameBits) {
  const OpCase& c = which();
  if (inseparable(engine(), c)) GTEST_SKIP() << "declares its halves inseparable";
  for (Layout offered : layouts()) {
    const Results together = run({.offered = offered});
    EXPECT_EQ(run({.offered = offered, .halves = Halves::separately}), together);
  }
}

// An input whose gradient nobody needs, or a frozen parameter, changes nothing for the others.
TEST_P(Operator, EachGradientAloneHasTheSameBits) {
  const OpCase& c = which();
  const Results all = run();
  const size_t inputs = c.x.size();
  for (size_t i = 0, nth = 0; i < inputs + all.dw.size(); ++i) {
    if (i < inputs && is_label(c, i)) continue;
    const Results one = run({.only = int(i)});
    const size_t dx = i < inputs ? nth++ : 0;
    EXPECT_EQ(i < inputs ? one.dx[dx] : one.dw[i - inputs], i < inputs ? all.dx[dx] : all.dw[i - inputs])
        << (i < inputs ? "dx " : "dw ") << (i < inputs ? i : i - inputs);
  }
}

TEST_P(Operator, AccumulateAdds) {
  const Results once = run();
  const double before = 3;
  const Results added = run({.into = Into::accumulate, .dw_before = before});
  EXPECT_EQ(added.dx, once.dx);
  for (size_t i = 0; i < once.dw.size(); ++i) {
    ASSERT_EQ(added.dw[i].size(), once.dw[i].size());
    // Sums may be formed starting from what is there: as many roundings as the sum itself, of larger numbers.
    for (size_t j = 0; j < once.dw[i].size(); ++j)
      EXPECT_NEAR(added.dw[i][j], once.dw[i][j] + before,
                  10 * tolerance() * (before + std::abs(once.dw[i][j])));
  }
}

TEST_P(Operator, GivesTheSameBitsAgainAndOnAnotherThread) {
  const Ask ask{.offered = last_layout()};
  const Results first = run(ask);
  EXPECT_EQ(run(ask), first);
  Results elsewhere;
  std::thread([&] { elsewhere = run(ask); }).join();
  EXPECT_EQ(elsewhere, first);
}

// A kernel that adds must give the bits of a second pass that adds afterwards.
TEST_P(Operator, AddsToInputGradientsAsASecondPassWould) {
  const OpCase& c = which();
  if (!adds_dx(engine(), c)) GTEST_SKIP() << "declares that it only overwrites";
  for (Layout offered : layouts()) {
    Results once = run({.offered = offered});
    const float before = as_stored(0.7f);
    const Results added = run({.offered = offered, .dx_into = Into::accumulate, .dx_before = before});
    for (Numbers& dx : once.dx)
      for (double& v : dx) v = as_stored(before + float(v));
    EXPECT_EQ(added, once) << name_of(offered);
  }
}

TEST_P(Operator, WorksInPlaceWithTheSameBits) {
  if (!works_in_place(which().op->type())) GTEST_SKIP() << "declares that y and dx are tensors of their own";
  for (Layout offered : layouts())
    EXPECT_EQ(run({.offered = offered, .in_place = true}), run({.offered = offered})) << name_of(offered);
}

INSTANTIATE_TEST_SUITE_P(All, Operator,
                         ::testing::Combine(::testing::ValuesIn(engines()), ::testing::ValuesIn(cases())),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace antichain::harness
