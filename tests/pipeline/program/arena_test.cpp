// The arena never lays two living tensors over each other, and does lay dead ones.
#include "pipeline/program/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace antichain {
namespace {

TEST(Arena, LifetimesThatTouchNeverShareBytes) {
  std::mt19937 random(1);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lifetimes(size_t(pick(0, 40)));
    int64_t sum = 0;
    for (Lifetime& l : lifetimes) {
      l = {.bytes = pick(1, 5000), .first = pick(0, 30)};
      l.last = l.first + pick(0, 10);
      sum += (l.bytes + 63) / 64 * 64;
    }
    const ArenaLayout layout = lay_out(lifetimes);
    EXPECT_LE(layout.bytes, sum);
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      EXPECT_EQ(layout.offsets[i] % 64, 0);
      EXPECT_LE(layout.offsets[i] + lifetimes[i].bytes, layout.bytes);
      for (size_t j = 0; j < i; ++j) {
        const bool in_time =
            lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
        const bool in_space = layout.offsets[i] < layout.offsets[j] + lifetimes[j].bytes &&
                              layout.offsets[j] < layout.offsets[i] + lifetimes[i].bytes;
        EXPECT_FALSE(in_time && in_space);
      }
    }
  }
}

TEST(Arena, AChainNeedsTwoNeighboursAtATime) {
  std::vector<Lifetime> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({.bytes = 640, .first = i, .last = i + 1});
  EXPECT_EQ(lay_out(chain).bytes, 2 * 640);
}

}  // namespace
}  // namespace antichain
