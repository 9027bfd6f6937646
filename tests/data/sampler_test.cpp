// Tests the order of samples in epochs and batches.
#include "data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/expect_error.h"

namespace antichain {
namespace {

TEST(Permutation, HoldsEveryIndexOnce) {
  for (const int64_t size : {0, 1, 2, 7, 1000}) {
    std::vector<int64_t> order = permutation(size, 5, 1);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(order[size_t(i)], i);
    ASSERT_EQ(int64_t(order.size()), size);
  }
}

TEST(Permutation, IsKeyedBySeedAndEpoch) {
  EXPECT_EQ(permutation(100, 1, 2), permutation(100, 1, 2));
  EXPECT_NE(permutation(100, 1, 2), permutation(100, 1, 3));
  EXPECT_NE(permutation(100, 1, 2), permutation(100, 2, 2));
}

TEST(Permutation, PutsEveryIndexEverywhere) {
  std::vector<int> first(6);
  for (int64_t epoch = 0; epoch < 6000; ++epoch) ++first[size_t(permutation(6, 3, epoch)[0])];
  // 1000 in the mean with a standard deviation of 29; 5 deviations.
  for (const int count : first) EXPECT_NEAR(count, 1000, 145);
}

TEST(Sampler, TrainingDropsTheLastPartialBatch) {
  Sampler sampler(23, {.batch = 5, .seed = 1});
  EXPECT_EQ(sampler.batches(), 4);
  std::vector<int64_t> seen;
  for (int64_t batch = 0; batch < 4; ++batch) {
    EXPECT_EQ(sampler.real_samples(batch), 5);
    for (int64_t k = 0; k < 5; ++k) seen.push_back(sampler.sample({0, batch}, k));
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_GE(seen.front(), 0);
  EXPECT_LT(seen.back(), 23);
}

TEST(Sampler, EpochsCanBeVisitedInAnyOrder) {
  Sampler forth(50, {.batch = 10, .seed = 9}), back(50, {.batch = 10, .seed = 9});
  const int64_t later = back.sample({3, 2}, 4), earlier = back.sample({1, 0}, 0);
  EXPECT_EQ(forth.sample({1, 0}, 0), earlier);
  EXPECT_EQ(forth.sample({3, 2}, 4), later);
  EXPECT_EQ(earlier, permutation(50, 9, 1)[0]);
}

TEST(Sampler, EvaluationPadsTheLastBatch) {
  Sampler sampler(12, {.batch = 5, .order = Order::in_file_order, .last = LastBatch::pad});
  EXPECT_EQ(sampler.batches(), 3);
  EXPECT_EQ(sampler.real_samples(1), 5);
  EXPECT_EQ(sampler.real_samples(2), 2);
  EXPECT_EQ(sampler.sample({0, 1}, 0), 5);
  EXPECT_EQ(sampler.sample({0, 2}, 1), 11);
  EXPECT_EQ(sampler.sample({0, 2}, 2), Sampler::padding);
}

TEST(Sampler, StepsIntoTheNextEpoch) {
  const Sampler sampler(10, {.batch = 5});
  EXPECT_EQ(sampler.after({0, 0}), (BatchPosition{0, 1}));
  EXPECT_EQ(sampler.after({0, 1}), (BatchPosition{1, 0}));
}

TEST(Sampler, RefusesLessThanOneBatch) {
  expect_error([] { Sampler(99, {.batch = 100}); }, {"99 samples", "batch of 100"});
  expect_error([] { Sampler(99, {.batch = 0}); }, {"batch of 0"});
  EXPECT_EQ(Sampler(99, {.batch = 100, .last = LastBatch::pad}).batches(), 1);
}

}  // namespace
}  // namespace antichain
