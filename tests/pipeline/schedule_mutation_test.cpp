// A validator is only worth something if it refuses: each mutation of a good schedule is caught, and by its name.
#include <gtest/gtest.h>

#include "data_flow.h"
#include "networks.h"
#include "pipeline/schedule.h"

namespace antichain::test {
namespace {

class Mutation : public testing::Test {
 protected:
  const Profile network = chain(3);
  const Plan plan = one_node_each(network);
  const Schedule good = make_schedule(network, plan, Policy::one_f_one_b, 4);

  // Replaces `from` by `to` in the text, once; a word stands between spaces.
  void refused(const std::string& from, const std::string& to,
               std::initializer_list<std::string> words) const {
    std::string text = print(good);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    SCOPED_TRACE(from + " → " + to);
    expect_error([&] { validate(parse_schedule(text, "text"), network, plan); }, words);
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
  expect_error([&] { validate(short_of_one, network, plan); }, {"2 ranks", "plan has 3"});
}

TEST_F(Mutation, Deadlock) {
  // Stage 0 wants the gradient of micro-batch 0 before it sends micro-batch 0: everybody waits.
  refused("0S0:a2>1 0L1 0F1 0S1:a2>1 0L2 0F2 0S2:a2>1 0R0:g2.3<1",
          "0L1 0F1 0S1:a2>1 0L2 0F2 0S2:a2>1 0R0:g2.3<1 0S0:a2>1",
          {"deadlock", "rank 0 waits forever in 0R0:g2.3<1", "rank 1 waits forever in 1R0:a2<0",
           "rank 2 waits forever in 2R0:a3<1"});
}

TEST_F(Mutation, AGradientInAForwardOnlySchedule) {
  Schedule schedule = make_schedule(network, plan, Policy::forward_only, 2);
  schedule.ranks[0].push_back({Verb::recv, 0, 0, {Flow::gradient, 2, 3}, 1});
  expect_error([&] { validate(schedule, network, plan); }, {"0B0", "missing"});
}

// Dropping or doubling any one action of any schedule is refused. Swapping two neighbours is refused, or the result is
// again good: then the independent interpreter agrees.
TEST(Mutations, AnyOneActionOfRandomSchedules) {
  std::mt19937 random(7);
  int swaps_refused = 0, swaps_harmless = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const Profile network = random_network(random, 6);
    const Plan plan = random_plan(random, network, 3);
    const Policy policy = trial % 2 ? Policy::one_f_one_b : Policy::gpipe;
    const Schedule good = make_schedule(network, plan, policy, 3);
    for (size_t r = 0; r < good.ranks.size(); ++r)
      for (size_t i = 0; i < good.ranks[r].size(); ++i) {
        Schedule dropped = good, doubled = good, swapped = good;
        dropped.ranks[r].erase(dropped.ranks[r].begin() + i);
        doubled.ranks[r].insert(doubled.ranks[r].begin() + i, good.ranks[r][i]);
        const std::string word = print(good.ranks[r][i]);
        expect_error([&] { validate(dropped, network, plan); }, {word, "missing"});
        expect_error([&] { validate(doubled, network, plan); }, {word, "twice"});
        if (i + 1 == good.ranks[r].size()) continue;
        std::swap(swapped.ranks[r][i], swapped.ranks[r][i + 1]);
        try {
          validate(swapped, network, plan);
          follow_data(swapped, network, plan, true);
          ++swaps_harmless;
        } catch (const Error&) {
          ++swaps_refused;
        }
      }
  }
  EXPECT_GT(swaps_refused, 100);
  EXPECT_GT(swaps_harmless, 100);  // two sends, two recvs: their order does not matter
}

}  // namespace
}  // namespace antichain::test
