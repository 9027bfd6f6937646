// Tests the switch that replaces the libraries by our own loops.
#include "layers/cuda/loops.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/expect_error.h"

namespace antichain::cuda {
namespace {

class Loops : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("ANTICHAIN_CUDA_LOOPS"); }
};

TEST_F(Loops, TakeThePlaceOfTheLibrariesThatAreNamed) {
  struct Case {
    const char *said, *words;
    bool cudnn, cublas;
  };
  for (const Case& c :
       {Case{"", "", false, false}, Case{"convolutions", ", convolutions by our own loops", true, false},
        Case{"products", ", products by our own loops", false, true},
        Case{"all", ", convolutions and products by our own loops", true, true}}) {
    ::setenv("ANTICHAIN_CUDA_LOOPS", c.said, 1);
    EXPECT_EQ(by_loops(Library::cudnn), c.cudnn) << c.said;
    EXPECT_EQ(by_loops(Library::cublas), c.cublas) << c.said;
    EXPECT_EQ(loops_in_words(), c.words);
  }
  ::unsetenv("ANTICHAIN_CUDA_LOOPS");
  EXPECT_FALSE(by_loops(Library::cudnn) || by_loops(Library::cublas));
}

TEST_F(Loops, AreNotSwitchedOnByAnythingElse) {
  ::setenv("ANTICHAIN_CUDA_LOOPS", "1", 1);
  expect_error([] { by_loops(Library::cudnn); }, {"ANTICHAIN_CUDA_LOOPS is '1'", "set it to convolutions"});
}

}  // namespace
}  // namespace antichain::cuda
