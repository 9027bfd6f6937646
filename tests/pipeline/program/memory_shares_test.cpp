// The table of memory adds up a step of small networks as one does by hand.
#include "pipeline/program/memory_shares.h"

#include <gtest/gtest.h>

#include <random>

#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/policy.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

constexpr int microbatches_of_shares = 3;

MemoryShares shares_of_rank(const Profile& profile, const Plan& plan, int rank, const Policy& policy) {
  return memory_shares(make_schedule(profile, plan, policy, microbatches_of_shares), plan,
                       profile)[size_t(rank)];
}

TEST(MemoryShares, OfAChain) {
  const Profile profile = chain(
      4, {.forward_s = 1, .output_bytes = 64, .param_bytes = 4, .stash_bytes = 100, .keeps_output = true});
  const MemoryShares one = shares_of_rank(profile, plan_of(profile, {{2, 3, 4, 5}}), 0, Policy::gpipe);
  EXPECT_EQ(one.weights, 4 * 4);
  EXPECT_EQ(one.gradients, 4 * 4);
  EXPECT_EQ(one.optimiser, 4 * 4);
  EXPECT_EQ(one.kept, microbatches_of_shares * 4 * (64 + 100));
  EXPECT_EQ(one.working, 2 * 64) << "a node's gradient and that of its input";
  EXPECT_EQ(one.messages, 0);
  EXPECT_EQ(one.bytes(), one.held() + one.kept + one.working);
  const MemoryShares last = shares_of_rank(profile, plan_of(profile, {{2, 3}, {4, 5}}), 1, Policy::gpipe);
  EXPECT_EQ(last.kept, microbatches_of_shares * 2 * (64 + 100));
  EXPECT_EQ(last.messages, microbatches_of_shares * 2 * 64) << "an activation and its gradient";
}

TEST(MemoryShares, HaveTheScratchOfTheRanksLargestKernel) {
  Profile profile = chain(4, {.forward_s = 1, .output_bytes = 64});
  for (size_t n = 2; n < 6; ++n) profile.nodes[n].cost.scratch_bytes = n == 3 ? 900 : 100;
  const Plan plan = plan_of(profile, {{2, 3}, {4, 5}});
  const MemoryShares first = shares_of_rank(profile, plan, 0, Policy::gpipe);
  EXPECT_EQ(first.scratch, 900);
  EXPECT_EQ(first.bytes(), first.kept + first.working + first.messages + 900);
  EXPECT_EQ(shares_of_rank(profile, plan, 1, Policy::gpipe).scratch, 100);
}

TEST(MemoryShares, OfEvaluationHaveNothingThatLearns) {
  const Profile profile = chain(
      4, {.forward_s = 1, .output_bytes = 64, .param_bytes = 4, .stash_bytes = 100, .keeps_output = true});
  const MemoryShares one = shares_of_rank(profile, plan_of(profile, {{2, 3, 4, 5}}), 0, Policy::forward_only);
  EXPECT_EQ(one.held(), one.weights);
  EXPECT_EQ(one.kept, 0);
}

// Plans count the same, by the stage.
TEST(MemoryShares, HoldWhatAPlanCounts) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    Profile profile = random_network(random, 10);
    add_weights(profile, random);
    const int stages = 1 + int(seed % 3);
    const Plan plan = random_plan(random, profile, stages);
    for (int rank = 0; rank < stages; ++rank)
      EXPECT_EQ(shares_of_rank(profile, plan, rank, Policy::one_f_one_b).held(),
                sum_of(profile, nodes_of_rank(plan, rank)).held_bytes)
          << "seed " << seed;
  }
}

}  // namespace
}  // namespace antichain::test
