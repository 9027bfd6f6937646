// Tests the switches of the CUDA engine, variables of the environment: what each says, what it changes, and
// how other words are refused.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "framework/cuda/fast.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/loops.h"
#include "layers/cuda/skipped_engines.h"
#include "tests/expect_error.h"
#include "tests/variable.h"

namespace antichain::cuda {
namespace {

TEST(FastSwitch, TurnsOnTheWaysThatAreNamed) {
  std::set<std::string> names;
  for (const FastWay& named : fast_ways()) {
    EXPECT_TRUE(names.insert(named.name).second) << named.name;
    const Variable said("ANTICHAIN_CUDA_FAST", named.name);
    for (const FastWay& way : fast_ways()) EXPECT_EQ(is_fast(way.way), way.way == named.way) << way.name;
  }
  const Variable said("ANTICHAIN_CUDA_FAST", "s2,s7");
  EXPECT_TRUE(is_fast(Fast::fold_in_sums) && is_fast(Fast::dependent_launch));
  EXPECT_FALSE(is_fast(Fast::special_passes));
  EXPECT_EQ(fast_in_words(), ", fast ways s2 and s7");
}

TEST(FastSwitch, TurnsAllOnOrOff) {
  struct Case {
    std::optional<std::string> said;
    const char* words;
    std::function<bool(const FastWay&)> is_on;
  };
  for (const Case& c : {Case{"all", nullptr, [](const FastWay&) { return true; }},
                        Case{"plain", ", without fast ways", [](const FastWay&) { return false; }},
                        Case{{}, "", [](const FastWay& way) { return way.by_default; }}}) {
    const Variable said("ANTICHAIN_CUDA_FAST", c.said);
    for (const FastWay& way : fast_ways()) EXPECT_EQ(is_fast(way.way), c.is_on(way)) << way.name;
    if (c.words) {
      EXPECT_EQ(fast_in_words(), c.words);
    }
  }
}

TEST(SkippedEngines, AreThoseThatAreNamed) {
  struct Case {
    std::optional<std::string> said;
    std::set<int64_t> engines;
    const char* words;
  };
  for (const Case& c : {Case{{}, {}, ""}, Case{"", {}, ""}, Case{"5", {5}, ", without cuDNN's engines 5"},
                        Case{"67,62,0", {0, 62, 67}, ", without cuDNN's engines 0 and 62 and 67"}}) {
    const Variable said("ANTICHAIN_CUDA_SKIP", c.said);
    EXPECT_EQ(skipped_engines(), c.engines);
    EXPECT_EQ(skipped_in_words(), c.words);
  }
}

TEST(Loops, TakeThePlaceOfTheLibrariesThatAreNamed) {
  struct Case {
    std::optional<std::string> said;
    const char* words;
    bool cudnn, cublas;
  };
  for (const Case& c : {Case{{}, "", false, false}, Case{"", "", false, false},
                        Case{"convolutions", ", convolutions by our own loops", true, false},
                        Case{"products", ", products by our own loops", false, true},
                        Case{"all", ", convolutions and products by our own loops", true, true}}) {
    const Variable said("ANTICHAIN_CUDA_LOOPS", c.said);
    EXPECT_EQ(by_loops(Library::cudnn), c.cudnn) << c.words;
    EXPECT_EQ(by_loops(Library::cublas), c.cublas) << c.words;
    EXPECT_EQ(loops_in_words(), c.words);
  }
}

TEST(CompiledGradient, IsMadeWhereItIsAskedFor) {
  for (const std::optional<std::string>& no : {std::optional<std::string>(), {""}, {"0"}}) {
    const Variable said("ANTICHAIN_CUDA_COMPILE", no);
    EXPECT_FALSE(compiles_weight_gradients());
  }
  const Variable said("ANTICHAIN_CUDA_COMPILE", "1");
  EXPECT_TRUE(compiles_weight_gradients());
  // There is no cuDNN here, so a caller gets the other way.
  const Convolution c(Conv2d({.out = 4, .kernel = 3, .pad = 1}), {2, 3, 8, 8}, Precision::bf16);
  EXPECT_NE(plan_bf16_weight_gradient(c), nullptr);
  ASSERT_FALSE(all_plans(c, Pass::weight_gradient, Factors::exact).empty());
  EXPECT_EQ(all_plans(c, Pass::weight_gradient, Factors::exact)[0].engine, "cuDNN, rounded to bf16");
}

// `--weight-gradients exact` sets the variable.
TEST(CompiledGradient, OrOneThatIsRoundedUnlessExactOnesAreAskedFor) {
  EXPECT_TRUE(rounds_weight_gradients());
  EXPECT_EQ(weight_gradients_in_words(), "");
  {
    const Variable said("ANTICHAIN_WEIGHT_GRADIENTS", "exact");
    EXPECT_FALSE(rounds_weight_gradients());
    EXPECT_EQ(weight_gradients_in_words(), ", weight gradients of bf16 exact");
  }
  const Variable said("ANTICHAIN_WEIGHT_GRADIENTS", "rounded");
  EXPECT_TRUE(rounds_weight_gradients());
  const Variable plain("ANTICHAIN_CUDA_FAST", "plain");
  EXPECT_FALSE(rounds_weight_gradients());
}

TEST(CudaSwitches, RefuseOtherWords) {
  struct Case {
    const char* variable;
    std::function<void()> read;
    const char* advice;
    std::vector<const char*> words;
  };
  for (const Case& c :
       {Case{"ANTICHAIN_CUDA_FAST",
             [] { is_fast(Fast::fold_in_sums); },
             "set it to some of s",
             {"s99", "s2,", ",s2", "s2 s3", "1"}},
        Case{"ANTICHAIN_CUDA_SKIP",
             [] { skipped_engines(); },
             "no list of engine numbers",
             {"62;67", "62, 67", "-1", "x", ",", "62,", "62,,67", "99999999999999999999"}},
        Case{"ANTICHAIN_CUDA_LOOPS", [] { by_loops(Library::cudnn); }, "set it to convolutions", {"1"}},
        Case{"ANTICHAIN_CUDA_COMPILE", [] { compiles_weight_gradients(); }, "set it to 1", {"yes"}},
        Case{"ANTICHAIN_WEIGHT_GRADIENTS", [] { weight_gradients_in_words(); }, "set it to one", {"true"}}})
    for (const char* word : c.words) {
      const Variable said(c.variable, word);
      expect_error(c.read, {c.variable, std::string("is '") + word + "'", c.advice});
    }
}

}  // namespace
}  // namespace antichain::cuda
