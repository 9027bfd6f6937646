// Block partitions have the property that the paper proves, on thousands of sequences.
#include "partition/planners/block_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace antichain {
namespace {

std::vector<int64_t> sums(const std::vector<int64_t>& elements, const std::vector<int>& ends) {
  std::vector<int64_t> sums;
  int begin = 0;
  for (int end : ends) {
    sums.push_back(std::accumulate(elements.begin() + begin, elements.begin() + end, int64_t(0)));
    begin = end;
  }
  return sums;
}

void expect_block_partition(const std::vector<int64_t>& elements, int blocks) {
  const std::vector<int> ends = block_partition(elements, blocks);
  ASSERT_EQ(int(ends.size()), blocks);
  ASSERT_EQ(ends.back(), int(elements.size()));
  for (int b = 0; b < blocks; ++b)
    ASSERT_GT(ends[b], b == 0 ? 0 : ends[b - 1]) << "block " << b << " is empty";
  const std::vector<int64_t> sum = sums(elements, ends);
  const auto [least, most] = std::minmax_element(sum.begin(), sum.end());
  ASSERT_LE(*most - *least, *std::max_element(elements.begin(), elements.end()));
}

TEST(BlockPartition, DiffersByNoMoreThanTheLargestElement) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<int64_t> elements(1 + random() % 40);
    // Up to three quarters of them take no time.
    const uint64_t scale = 1 + random() % 30, zeros = random() % 4;
    for (int64_t& element : elements) element = random() % 4 < zeros ? 0 : int64_t(random() % scale);
    expect_block_partition(elements, 1 + int(random() % elements.size()));
  }
}

TEST(BlockPartition, SurvivesLopsidedSequences) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> elements(200);
    for (size_t i = 0; i < elements.size(); ++i)
      elements[i] = i < 20 ? int64_t(random() % 1'000'000'000'000) : int64_t(random() % 3);
    if (round % 2) std::reverse(elements.begin(), elements.end());
    expect_block_partition(elements, 1 + int(random() % 60));
  }
}

TEST(BlockPartition, OfZerosHasEqualCounts) {
  EXPECT_EQ(block_partition({0, 0, 0, 0, 0, 0}, 3), std::vector<int>({2, 4, 6}));
}

TEST(BlockPartition, GivesEveryElementABlockOfItsOwn) {
  EXPECT_EQ(block_partition({9, 0, 4}, 3), std::vector<int>({1, 2, 3}));
}

// 15 elements a block at first, the sums 15, 15, 15 and 150: many have to move.
TEST(BlockPartition, MovesElementsThroughBlocks) {
  std::vector<int64_t> elements(60, 1);
  std::fill(elements.begin() + 45, elements.end(), 10);
  const std::vector<int64_t> sum = sums(elements, block_partition(elements, 4));
  EXPECT_LE(*std::max_element(sum.begin(), sum.end()) - *std::min_element(sum.begin(), sum.end()), 10);
}

TEST(BlockPartition, OfAHundredThousandElementsIsQuick) {
  std::mt19937_64 random(3);
  std::vector<int64_t> elements(100'000);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = int64_t(random() % (i < 50'000 ? 1000 : 10'000));
  expect_block_partition(elements, 64);
}

}  // namespace
}  // namespace antichain
