// Tests the switch that excludes engines of cuDNN's from every choice.
#include "layers/cuda/skipped_engines.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/expect_error.h"

namespace antichain::cuda {
namespace {

class SkippedEngines : public ::testing::Test {
 protected:
  void say(const char* list) { ::setenv("ANTICHAIN_CUDA_SKIP", list, 1); }
  void TearDown() override { ::unsetenv("ANTICHAIN_CUDA_SKIP"); }
};

TEST_F(SkippedEngines, AreThoseThatAreNamed) {
  EXPECT_TRUE(skipped_engines().empty());
  EXPECT_EQ(skipped_in_words(), "");
  say("");
  EXPECT_TRUE(skipped_engines().empty());
  say("67,62,0");
  EXPECT_EQ(skipped_engines(), (std::set<int64_t>{0, 62, 67}));
  EXPECT_EQ(skipped_in_words(), ", without cuDNN's engines 0 and 62 and 67");
  say("5");
  EXPECT_EQ(skipped_in_words(), ", without cuDNN's engines 5");
}

TEST_F(SkippedEngines, AreNumbers) {
  for (const char* wrong : {"62;67", "62, 67", "-1", "x", ",", "62,", "62,,67", "99999999999999999999"}) {
    say(wrong);
    expect_error([] { skipped_engines(); },
                 {"ANTICHAIN_CUDA_SKIP is '", "no list of engine numbers", "62,67"});
  }
}

}  // namespace
}  // namespace antichain::cuda
