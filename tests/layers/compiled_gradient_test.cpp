// Tests the switch for weight gradients by engines that cuDNN compiles. There is no cuDNN here, so a caller
// gets the other way.
#include <gtest/gtest.h>

#include <cstdlib>

#include "layers/cuda/convolution.h"
#include "tests/expect_error.h"

namespace antichain::cuda {
namespace {

class CompiledGradient : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* variable :
         {"ANTICHAIN_CUDA_COMPILE", "ANTICHAIN_CUDA_FAST", "ANTICHAIN_WEIGHT_GRADIENTS"})
      ::unsetenv(variable);
  }
  static void say(const char* word) { ::setenv("ANTICHAIN_CUDA_COMPILE", word, 1); }
};

TEST_F(CompiledGradient, IsMadeWhereItIsAskedFor) {
  EXPECT_FALSE(compiles_weight_gradients());
  for (const char* no : {"", "0"}) {
    say(no);
    EXPECT_FALSE(compiles_weight_gradients());
  }
  say("1");
  EXPECT_TRUE(compiles_weight_gradients());
  say("yes");
  expect_error([] { compiles_weight_gradients(); }, {"ANTICHAIN_CUDA_COMPILE is 'yes'", "set it to 1"});
}

TEST_F(CompiledGradient, FallsBackWhereCudnnHasNoSuchEngine) {
  say("1");
  const Conv2d conv({.out = 4, .kernel = 3, .pad = 1});
  const Convolution c(conv, {2, 3, 8, 8}, Precision::bf16);
  EXPECT_NE(plan_bf16_weight_gradient(c), nullptr);
  ASSERT_FALSE(all_plans(c, Pass::weight_gradient, Factors::exact).empty());
  EXPECT_EQ(all_plans(c, Pass::weight_gradient, Factors::exact)[0].engine, "cuDNN, rounded to bf16");
}

// `--weight-gradients exact` sets the variable.
TEST_F(CompiledGradient, OrOneThatIsRoundedUnlessExactOnesAreAskedFor) {
  EXPECT_TRUE(rounds_weight_gradients());
  EXPECT_EQ(weight_gradients_in_words(), "");
  ::setenv("ANTICHAIN_WEIGHT_GRADIENTS", "exact", 1);
  EXPECT_FALSE(rounds_weight_gradients());
  EXPECT_EQ(weight_gradients_in_words(), ", weight gradients of bf16 exact");
  ::setenv("ANTICHAIN_WEIGHT_GRADIENTS", "rounded", 1);
  EXPECT_TRUE(rounds_weight_gradients());
  ::setenv("ANTICHAIN_CUDA_FAST", "plain", 1);
  EXPECT_FALSE(rounds_weight_gradients());
  ::setenv("ANTICHAIN_WEIGHT_GRADIENTS", "true", 1);
  expect_error([] { weight_gradients_in_words(); },
               {"ANTICHAIN_WEIGHT_GRADIENTS is 'true'", "set it to one"});
}

}  // namespace
}  // namespace antichain::cuda
