// These tests say, case by case, where the contributions to one tensor's gradient come from.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/schedule/schedule.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

// Returns a network in which node 1 has the consumers 2, 3, 4 and 5.
Profile fan_out() {
  Profile profile = empty_network();
  profile.nodes.push_back(node("image", Role::input, {}, false, {}));
  profile.nodes.push_back(node("tensor", Role::compute, {0}, true, {}));
  for (int i = 2; i <= 5; ++i)
    profile.nodes.push_back(node(fmt::format("c{}", i), Role::compute, {1}, true, {}));
  return profile;
}

// "2:5.4" is stage 2's run down to consumer 4.
std::string fold(const std::vector<int>& stage_of_consumers) {
  std::vector<int> stage_of = {-1, 0};
  stage_of.insert(stage_of.end(), stage_of_consumers.begin(), stage_of_consumers.end());
  std::string text;
  for (const FoldTerm& term : gradient_fold(fan_out(), stage_of, 1)) {
    EXPECT_EQ(term.message.flow, Flow::gradient);
    EXPECT_EQ(term.message.tensor, 1);
    text += std::to_string(term.stage) + ":" + std::to_string(term.message.consumer) + " ";
  }
  return text;
}

TEST(GradientFold, LocalConsumersAreFoldedOneByOneDescending) {
  EXPECT_EQ(fold({0, 0, 0, 0}), "0:5 0:4 0:3 0:2 ");
}

TEST(GradientFold, OneRemoteStagePreSumsEverything) { EXPECT_EQ(fold({1, 1, 1, 1}), "1:2 "); }

TEST(GradientFold, OnlyTheRunThatStartsTheFoldIsPreSummed) { EXPECT_EQ(fold({1, 1, 2, 2}), "2:4 1:3 1:2 "); }

TEST(GradientFold, ThreeStages) {
  EXPECT_EQ(fold({0, 1, 2, 2}), "2:4 1:3 0:2 ");
  EXPECT_EQ(fold({1, 2, 3, 3}), "3:4 2:3 1:2 ");
}

// Consumer 5 is on stage 1, but 4 and 3, with lower numbers, on the later stage 2: the fold starts on stage
// 1.
TEST(GradientFold, AHigherConsumerMaySitOnAnEarlierStage) {
  EXPECT_EQ(fold({1, 2, 2, 1}), "1:5 2:4 2:3 1:2 ");
  EXPECT_EQ(fold({2, 2, 1, 1}), "1:4 2:3 2:2 ");
}

TEST(GradientFold, ALocalConsumerFirstLeavesTheOthersSingle) {
  EXPECT_EQ(fold({1, 1, 1, 0}), "0:5 1:4 1:3 1:2 ");
  EXPECT_EQ(fold({0, 1, 1, 1}), "1:3 0:2 ");
}

TEST(GradientFold, NoTermsWithoutNeed) {
  Profile profile = fan_out();
  EXPECT_TRUE(gradient_fold(profile, {-1, 0, 0, 0, 0, 0}, 0).empty());  // an input
  EXPECT_TRUE(gradient_fold(profile, {-1, 0, 0, 0, 0, 0}, 5).empty());  // no consumer
  profile.nodes[1].needs_gradient = false;
  EXPECT_TRUE(gradient_fold(profile, {-1, 0, 1, 1, 1, 1}, 1).empty());
}

}  // namespace
}  // namespace antichain::test
