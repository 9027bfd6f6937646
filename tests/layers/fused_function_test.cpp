// Tests that batch norm with an activation function in its passes gives the bits of the two operators one
// after the other, in both directions and in either precision.
#include <gtest/gtest.h>

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

// Computes norm and function apart, and returns the results of both as of one operator.
Results apart(const Shape& x, ActivationFunction function, const Values& values, const Ask& ask) {
  const OpCase norm = norm_case(x, {}), activate{"activate", std::make_shared<Activate>(function), {x}};
  Ask fresh = ask;
  fresh.dx_into = Into::overwrite;
  const Values between{.x = {run(cpu_engine(), norm, values, fresh).y}, .dy = values.dy};
  const Values evaluated{.x = {run(cpu_engine(), norm, values, fresh).evaluated}, .dy = values.dy};
  const Results behind = run(cpu_engine(), activate, between, fresh);
  Values through = values;
  through.dy = behind.dx[0];
  Results all = run(cpu_engine(), norm, through, ask);
  all.y = behind.y;
  all.evaluated = run(cpu_engine(), activate, evaluated, fresh).y;
  return all;
}

class FusedFunction : public ::testing::TestWithParam<std::tuple<Precision, Layout, Into>> {};

TEST_P(FusedFunction, GivesTheBitsOfTwoOperators) {
  const auto [precision, layout, into] = GetParam();
  const Ask ask{.offered = layout, .dx_into = into, .dx_before = 0.75, .precision = precision};
  for (const ActivationFunction function : functions)
    for (const Shape& x : {Shape{5, 16, 7, 9}, Shape{3, 17, 5, 3}, Shape{70, 24, 2, 2}, Shape{2, 10, 1, 1}}) {
      SCOPED_TRACE(std::string(name_of(function)) + " of " + x.str());
      const OpCase fused = norm_case(x, function);
      const Values values = wide(fused, precision);
      EXPECT_EQ(run(cpu_engine(), fused, values, ask), apart(x, function, values, ask));
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
  const auto fused = norm.then(silu);
  ASSERT_TRUE(fused);
  EXPECT_EQ(fused->str(), "batch_norm(eps 1e-05, momentum 0.1, silu)");
  EXPECT_FALSE(fused->then(silu));
  EXPECT_FALSE(added.then(silu));
  const auto fuses = cpu_engine().entry("batch_norm").fuses;
  EXPECT_TRUE(fuses(*fused));
  EXPECT_FALSE(fuses(*norm.then(Activate(ActivationFunction::sigmoid))));
  const Shape x{2, 8, 4, 4};
  EXPECT_EQ(fused->infer({&x, 1}).forward_flops,
            norm.infer({&x, 1}).forward_flops + silu.infer({&x, 1}).forward_flops);
}

}  // namespace
}  // namespace antichain::harness
