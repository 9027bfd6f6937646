// Tests that batch norm with an activation function in its passes gives the bits of the two operators one
// after the other, in both directions. In bf16 it gives float32's, rounded where they are stored: there is no
// number between the two.
#include <gtest/gtest.h>

#include "framework/bf16.h"
#include "layers/activate.h"
#include "layers/batch_norm.h"
#include "tests/cpu_engine.h"
#include "tests/layers/op_harness.h"

namespace antichain::harness {
namespace {

constexpr ActivationFunction functions[] = {ActivationFunction::hardswish, ActivationFunction::relu6,
                                            ActivationFunction::silu};

OpCase norm_case(const Shape& x, std::optional<ActivationFunction> function) {
  return {"norm", std::make_shared<BatchNorm>(BatchNormOptions{.activation = function}), {x}};
}

// Weights of 9 take normalised numbers beyond all kinks.
Values wide(const OpCase& c, Precision precision) {
  Values values = draw(c);
  for (double& weight : values.params[0]) weight = float(9 * weight);
  return precision == Precision::bf16 ? rounded_to_bf16(values) : values;
}

// Computes norm and function apart, in float32, and returns the results of both as of one operator.
Results apart(const Shape& x, ActivationFunction function, const Values& values, Layout layout) {
  const OpCase norm = norm_case(x, {}), activate{"activate", std::make_shared<Activate>(function), {x}};
  const Ask ask{.offered = layout};
  const Results before = run(cpu_engine(), norm, values, ask);
  const Results behind = run(cpu_engine(), activate, {.x = {before.y}, .dy = values.dy}, ask);
  Values through = values;
  through.dy = behind.dx[0];
  Results all = run(cpu_engine(), norm, through, ask);
  all.y = behind.y;
  all.evaluated = run(cpu_engine(), activate, {.x = {before.evaluated}, .dy = values.dy}, ask).y;
  return all;
}

class FusedFunction : public ::testing::TestWithParam<std::tuple<Precision, Layout, Into>> {};

TEST_P(FusedFunction, GivesTheBitsOfTwoOperators) {
  const auto [precision, layout, into] = GetParam();
  const Ask ask{.offered = layout, .dx_into = into, .dx_before = 0.75, .precision = precision};
  const auto stored = [in_bf16 = precision == Precision::bf16](double v) {
    return in_bf16 ? float(Bf16(float(v))) : float(v);
  };
  for (const ActivationFunction function : functions)
    for (const Shape& x : {Shape{5, 16, 7, 9}, Shape{3, 17, 5, 3}, Shape{70, 24, 2, 2}, Shape{2, 10, 1, 1}}) {
      SCOPED_TRACE(std::string(name_of(function)) + " of " + x.str());
      const OpCase fused = norm_case(x, function);
      const Values values = wide(fused, precision);
      Results two = apart(x, function, values, layout);
      for (Numbers* all : {&two.y, &two.evaluated, &two.dx[0]})
        for (double& v : *all) v = stored(v);
      if (into == Into::accumulate)
        for (double& v : two.dx[0]) v = stored(float(ask.dx_before) + float(v));
      EXPECT_EQ(run(cpu_engine(), fused, values, ask), two);
    }
}

INSTANTIATE_TEST_SUITE_P(BatchNorm, FusedFunction,
                         ::testing::Combine(::testing::Values(Precision::float32, Precision::bf16),
                                            ::testing::Values(Layout::plain, Layout::nChw8c, Layout::nChw16c),
                                            ::testing::Values(Into::overwrite, Into::accumulate)));

// What the functions are fused to, and what they are not.
TEST(FusedFunction, FollowsANormWithoutAnAdd) {
  const BatchNorm norm({}), added({.add = true});
  const Activate silu(ActivationFunction::silu);
  const auto fused = norm.then(silu, 0);
  ASSERT_TRUE(fused);
  EXPECT_EQ(fused->str(), "batch_norm(eps 1e-05, momentum 0.1, silu)");
  EXPECT_FALSE(fused->then(silu, 0));
  EXPECT_FALSE(added.then(silu, 0));
  const auto fuses = cpu_engine().entry("batch_norm").fuses;
  EXPECT_TRUE(fuses(*fused));
  EXPECT_FALSE(fuses(*norm.then(Activate(ActivationFunction::sigmoid), 0)));
  const Shape x{2, 8, 4, 4};
  EXPECT_EQ(fused->infer({&x, 1}).forward_flops,
            norm.infer({&x, 1}).forward_flops + silu.infer({&x, 1}).forward_flops);
}

}  // namespace
}  // namespace antichain::harness
