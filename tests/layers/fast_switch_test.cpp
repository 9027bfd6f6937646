// Tests the switch of the fast ways.
#include "framework/cuda/fast.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "tests/expect_error.h"

namespace antichain::cuda {
namespace {

class FastSwitch : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("ANTICHAIN_CUDA_FAST"); }
  static void say(const std::string& words) { ::setenv("ANTICHAIN_CUDA_FAST", words.c_str(), 1); }
};

TEST_F(FastSwitch, WaysAreThoseThatAreNamed) {
  for (const FastWay& named : fast_ways()) {
    say(named.name);
    for (const FastWay& way : fast_ways()) EXPECT_EQ(is_fast(way.way), way.way == named.way) << way.name;
  }
  say("s2,s7");
  EXPECT_TRUE(is_fast(Fast::fold_in_sums) && is_fast(Fast::dependent_launch));
  EXPECT_FALSE(is_fast(Fast::special_passes));
  EXPECT_EQ(fast_in_words(), ", fast ways s2 and s7");
}

TEST_F(FastSwitch, WaysCanAllBeOnOrOff) {
  for (const FastWay& way : fast_ways()) {
    say("all");
    EXPECT_TRUE(is_fast(way.way)) << way.name;
    say("plain");
    EXPECT_FALSE(is_fast(way.way)) << way.name;
    EXPECT_EQ(fast_in_words(), ", without fast ways");
    ::unsetenv("ANTICHAIN_CUDA_FAST");
    EXPECT_EQ(is_fast(way.way), way.by_default) << way.name;
    EXPECT_EQ(fast_in_words(), "");
  }
}

TEST_F(FastSwitch, WaysThatDoNotExistAreRefused) {
  for (const char* said : {"s99", "s2,", ",s2", "s2 s3", "1"}) {
    say(said);
    expect_error([] { is_fast(Fast::fold_in_sums); }, {"ANTICHAIN_CUDA_FAST is '", "set it to some of s"});
  }
}

TEST_F(FastSwitch, WaysHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const FastWay& way : fast_ways()) EXPECT_TRUE(names.insert(way.name).second) << way.name;
}

}  // namespace
}  // namespace antichain::cuda
