// Tests the parts of the planner of convolutions without cuDNN: values that are made once, and objects that
// each thread has.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "layers/cuda/lent.h"
#include "layers/cuda/made_once.h"

namespace antichain::cuda {
namespace {

TEST(MadeOnce, IsMadeOncePerKey) {
  MadeOnce<int, std::string> made;
  int times = 0;
  const auto make = [&] { return std::to_string(++times); };
  EXPECT_EQ(made.of(7, make), "1");
  EXPECT_EQ(made.of(8, make), "2");
  EXPECT_EQ(made.of(7, make), "1");
}

// Where cuDNN has no engine, that is an answer to keep; where the call failed, there is none yet.
TEST(MadeOnce, IsMadeAgainAfterAFailure) {
  MadeOnce<int, std::shared_ptr<int>> made;
  EXPECT_THROW(made.of(1, []() -> std::shared_ptr<int> { throw std::runtime_error("out of memory"); }),
               std::runtime_error);
  EXPECT_EQ(*made.of(1, [] { return std::make_shared<int>(5); }), 5);
  EXPECT_EQ(made.of(2, [] { return std::shared_ptr<int>(); }), nullptr);
  EXPECT_EQ(made.of(2, [] { return std::make_shared<int>(5); }), nullptr);
}

struct Lent {
  int threads = 0;
};

TEST(LentToThreads, EachThreadHasItsOwnAndTheNextGetsItAfterwards) {
  Lent* const here = &lent_to_this_thread<Lent>();
  EXPECT_EQ(&lent_to_this_thread<Lent>(), here);
  Lent *first = nullptr, *second = nullptr;
  std::thread([&] {
    first = &lent_to_this_thread<Lent>();
    ++first->threads;
    std::thread([&] { second = &lent_to_this_thread<Lent>(); }).join();
  }).join();
  EXPECT_EQ((std::set<Lent*>{here, first, second}.size()), 3u);
  Lent* again = nullptr;
  std::thread([&] { again = &lent_to_this_thread<Lent>(); }).join();
  EXPECT_TRUE(again == first || again == second) << "one that a thread has left";
}

}  // namespace
}  // namespace antichain::cuda
