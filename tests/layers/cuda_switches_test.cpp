// Tests the switches of the CUDA engine, variables of the environment: what each says, what it changes, and
// how other words are refused.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "framework/cuda/switches.h"
#include "tests/expect_error.h"
#include "tests/variable.h"

namespace antichain::cuda {
namespace {

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
    EXPECT_EQ(switches_in_words(), c.words);
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
    EXPECT_EQ(switches_in_words(), c.words);
  }
}

// `--weight-gradients exact` sets the variable.
TEST(WeightGradients, AreRoundedUnlessExactOnesAreAskedFor) {
  EXPECT_TRUE(rounds_weight_gradients());
  {
    const Variable said("ANTICHAIN_WEIGHT_GRADIENTS", "exact");
    EXPECT_FALSE(rounds_weight_gradients());
    EXPECT_EQ(switches_in_words(), ", weight gradients of bf16 exact");
  }
  const Variable said("ANTICHAIN_WEIGHT_GRADIENTS", "rounded");
  EXPECT_TRUE(rounds_weight_gradients());
}

TEST(Graphs, AreRecordedUnlessTheVariableIs0) {
  EXPECT_TRUE(records_graphs());
  const Variable said("ANTICHAIN_CUDA_GRAPHS", "0"), also("ANTICHAIN_CUDA_SKIP", "5");
  EXPECT_FALSE(records_graphs());
  EXPECT_EQ(switches_in_words(), ", without cuDNN's engines 5, without graphs");
}

TEST(CudaSwitches, RefuseOtherWords) {
  struct Case {
    const char* variable;
    std::function<void()> read;
    const char* advice;
    std::vector<const char*> words;
  };
  for (const Case& c :
       {Case{"ANTICHAIN_CUDA_SKIP",
             [] { skipped_engines(); },
             "no list of engine numbers",
             {"62;67", "62, 67", "-1", "x", ",", "62,", "62,,67", "99999999999999999999"}},
        Case{"ANTICHAIN_CUDA_LOOPS", [] { by_loops(Library::cudnn); }, "set it to convolutions", {"1"}},
        Case{"ANTICHAIN_CUDA_GRAPHS", [] { records_graphs(); }, "set it to 0", {"no"}},
        Case{"ANTICHAIN_WEIGHT_GRADIENTS", [] { rounds_weight_gradients(); }, "set it to rounded", {"true"}}})
    for (const char* word : c.words) {
      const Variable said(c.variable, word);
      expect_error(c.read, {c.variable, std::string("is '") + word + "'", c.advice});
    }
}

}  // namespace
}  // namespace antichain::cuda
