// A validator is only worth something if it refuses: each mutation of a good schedule is caught, and by its
// name.
#include <gtest/gtest.h>

#include "pipeline/schedule/policy.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/schedule/mutations.h"

namespace antichain::test {
namespace {

class Mutation : public ::testing::Test {
 protected:
  const Profile profile = chain(3);
  const Plan plan = one_node_each(profile);
  const Schedule good = make_schedule(profile, plan, Policy::one_f_one_b, 4);

  void refused(const std::string& from, const std::string& to,
               std::initializer_list<std::string> words) const {
    expect_refused({profile, plan, good}, "", from, to, words);
  }
};

TEST_F(Mutation, AMissingAction) {
  refused(" 1F2 ", " ", {"rank 1", "1F2", "missing"});
  refused(" 1B2 ", " ", {"rank 1", "1B2", "missing"});
  refused(" 0L1 ", " ", {"rank 0", "0L1", "missing"});
  refused(" 2U", "", {"rank 2", "2U", "missing"});
}

TEST_F(Mutation, AMessageWithoutItsOtherHalf) {
  refused(" 0S2:a2>1", "", {"rank 0", "0S2:a2>1", "missing", "rank 1 waits"});
  refused(" 1R2:a2<0", "", {"rank 1", "1R2:a2<0", "missing", "sent and not received"});
  refused(" 1S3:g2.3>0", "", {"rank 1", "1S3:g2.3>0", "missing"});
  refused(" 0R3:g2.3<1", "", {"rank 0", "0R3:g2.3<1", "sent and not used"});
}

TEST_F(Mutation, AnActionTwice) {
  refused(" 1F2 ", " 1F2 1F2 ", {"rank 1", "1F2", "twice"});
  refused(" 0R3:g2.3<1", " 0R3:g2.3<1 0R3:g2.3<1", {"rank 0", "0R3:g2.3<1", "used twice"});
  refused(" 2B1", " 2B1 2W1", {"rank 2", "2B1", "used twice"});
  refused(" 2U", " 2U 2U", {"rank 2", "2U", "twice"});
}

TEST_F(Mutation, AnActionBeforeWhatItNeeds) {
  refused("2F1 2B1", "2B1 2F1", {"rank 2", "2B1", "before 2F1"});
  refused("0L1 0F1", "0F1 0L1", {"rank 0", "0F1", "before 0L1"});
  refused("1R2:a2<0 1F2", "1F2 1R2:a2<0", {"rank 1", "1F2", "before 1R2:a2<0"});
  refused("1F2 1S2:a3>2", "1S2:a3>2 1F2", {"rank 1", "1S2:a3>2", "before 1F2"});
  refused("0R1:g2.3<1 0B1", "0B1 0R1:g2.3<1", {"rank 0", "0B1", "before 0R1:g2.3<1", "unused"});
  refused("0R3:g2.3<1 0B3 0U", "0U 0R3:g2.3<1 0B3", {"rank 0", "0U", "before 0B3"});
}

TEST_F(Mutation, MicrobatchesOutOfOrder) {
  refused("0R1:g2.3<1 0B1 0R2:g2.3<1 0B2", "0R2:g2.3<1 0B2 0R1:g2.3<1 0B1",
          {"rank 0", "0B2", "before 0B1", "order"});
  refused("0L0 0F0 0S0:a2>1 0L1 0F1 0S1:a2>1", "0L1 0F1 0S1:a2>1 0L0 0F0 0S0:a2>1",
          {"0F1", "before 0F0", "order"});
}

TEST_F(Mutation, WhatThePlanDoesNotAskFor) {
  refused(" 1F2 ", " 1L2 1F2 ", {"rank 1", "1L2", "no input"});
  refused("0S2:a2>1", "0S2:a2>2", {"rank 0", "0S2:a2>2", "does not ask for"});
  refused("1S2:g2.3>0", "1S2:g2.4>0", {"rank 1", "1S2:g2.4>0", "does not ask for"});
  refused("0S2:a2>1", "0S2:a2>1 0S2:a1>1", {"0S2:a1>1", "does not ask for"});
  refused(" 1F2 ", " 0F2 ", {"rank 1", "0F2", "belongs to rank 0"});
  refused(" 1F2 ", " 5F2 ", {"rank 1", "5F2", "no stage"});
  Schedule short_of_one = good;
  short_of_one.ranks.pop_back();
  expect_error([&] { validate(short_of_one, profile, plan); }, {"2 ranks", "plan has 3"});
}

TEST_F(Mutation, Deadlock) {
  // Stage 0 wants the gradient of micro-batch 0 before it sends micro-batch 0: everybody waits.
  refused("0S0:a2>1 0L1 0F1 0S1:a2>1 0L2 0F2 0S2:a2>1 0R0:g2.3<1",
          "0L1 0F1 0S1:a2>1 0L2 0F2 0S2:a2>1 0R0:g2.3<1 0S0:a2>1",
          {"deadlock", "rank 0 waits forever in 0R0:g2.3<1", "rank 1 waits forever in 1R0:a2<0",
           "rank 2 waits forever in 2R0:a3<1"});
}

TEST_F(Mutation, AGradientInAForwardOnlySchedule) {
  Schedule schedule = make_schedule(profile, plan, Policy::forward_only, 2);
  schedule.ranks[0].push_back({Verb::recv, 0, 0, {Flow::gradient, 2, 3}, 1});
  expect_error([&] { validate(schedule, profile, plan); }, {"0B0", "missing"});
}

TEST(Mutations, AnyOneActionOfRandomSchedules) {
  std::mt19937 random(7);
  Swaps swaps;
  for (int trial = 0; trial < 20; ++trial) {
    const Profile profile = random_network(random, 6);
    const Plan plan = random_plan(random, profile, 3);
    const Policy policy = trial % 2 ? Policy::one_f_one_b : Policy::gpipe;
    mutate_every_action({profile, plan, make_schedule(profile, plan, policy, 3)}, swaps);
  }
  EXPECT_GT(swaps.refused, 100);
  EXPECT_GT(swaps.harmless, 100);  // two sends, two recvs: their order does not matter
}

TEST(Mutations, AnyOneActionWhereARankHasSeveralStages) {
  std::mt19937 random(8);
  Swaps swaps;
  for (const Policy& policy : policies()) {
    if (chunks_of(policy) == 1) continue;
    const Profile profile = random_network(random, 8);
    const Plan plan = on_ranks_of(policy, random_plan(random, profile, 4));
    mutate_every_action({profile, plan, make_schedule(profile, plan, policy, 4)}, swaps);
  }
  EXPECT_GT(swaps.refused, 100);
  EXPECT_GT(swaps.harmless, 100);
}

}  // namespace
}  // namespace antichain::test
