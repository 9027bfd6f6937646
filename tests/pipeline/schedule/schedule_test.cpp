// Every policy's schedules have golden text, bounds on what is in flight, and are valid for all small sizes
// and hundreds of random networks with skips, branches, interleaved node numbers and permuted ranks.
#include "pipeline/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/schedule/policy.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/data_flow.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/schedule/only.h"

namespace antichain::test {
namespace {

TEST(Schedule, OneForwardOneBackwardIsThis) {
  const Profile profile = chain(3);
  const Schedule schedule = make_schedule(profile, one_node_each(profile), Policy::one_f_one_b, 4);
  EXPECT_EQ(
      print(schedule),
      "# <stage><letter><micro-batch>: L load, R receive, F forward, B backward, I its input half, "
      "W its weight half, S send, U update\n"
      "# messages: a<node> its output, g<node>.<consumer> its gradient folded down to that consumer; "
      ">rank to, <rank from\n"
      "microbatches 4\n"
      "rank 0: 0L0 0F0 0S0:a2>1 0L1 0F1 0S1:a2>1 0L2 0F2 0S2:a2>1 0R0:g2.3<1 0B0 0L3 0F3 0S3:a2>1 "
      "0R1:g2.3<1 0B1 0R2:g2.3<1 0B2 0R3:g2.3<1 0B3 0U\n"
      "rank 1: 1R0:a2<0 1F0 1S0:a3>2 1R1:a2<0 1F1 1S1:a3>2 1R0:g3.4<2 1B0 1S0:g2.3>0 1R2:a2<0 1F2 1S2:a3>2 "
      "1R1:g3.4<2 1B1 1S1:g2.3>0 1R3:a2<0 1F3 1S3:a3>2 1R2:g3.4<2 1B2 1S2:g2.3>0 1R3:g3.4<2 1B3 1S3:g2.3>0 "
      "1U\n"
      "rank 2: 2L0 2R0:a3<1 2F0 2B0 2S0:g3.4>1 2L1 2R1:a3<1 2F1 2B1 2S1:g3.4>1 2L2 2R2:a3<1 2F2 2B2 "
      "2S2:g3.4>1 "
      "2L3 2R3:a3<1 2F3 2B3 2S3:g3.4>1 2U\n");
}

TEST(Schedule, GpipeDoesAllForwardsThenAllBackwardsAscending) {
  const Profile profile = chain(1);
  EXPECT_NE(print(make_schedule(profile, one_node_each(profile), Policy::gpipe, 3))
                .find("rank 0: 0L0 0F0 0L1 0F1 0L2 0F2 0B0 0B1 0B2 0U\n"),
            std::string::npos);
}

TEST(Schedule, ForwardOnlyHasNoBackwardAndNoUpdate) {
  const Profile profile = chain(2);
  EXPECT_NE(print(make_schedule(profile, one_node_each(profile), Policy::forward_only, 2))
                .find("rank 0: 0L0 0F0 0S0:a2>1 0L1 0F1 0S1:a2>1\n"
                      "rank 1: 1L0 1R0:a2<0 1F0 1L1 1R1:a2<0 1F1\n"),
            std::string::npos);
}

TEST(Schedule, StagesMayHaveTheirRanksInAnyOrder) {
  const Profile profile = chain(3);
  const Schedule schedule = make_schedule(profile, one_node_each(profile, {2, 0, 1}), Policy::one_f_one_b, 1);
  EXPECT_NE(print(schedule).find("rank 0: 1R0:a2<2 1F0 1S0:a3>1 1R0:g3.4<1 1B0 1S0:g2.3>2 1U\n"
                                 "rank 1: 2L0 2R0:a3<0 2F0 2B0 2S0:g3.4>0 2U\n"
                                 "rank 2: 0L0 0F0 0S0:a2>0 0R0:g2.3<0 0B0 0U\n"),
            std::string::npos)
      << print(schedule);
}

// For all S ≤ 8, M ≤ 24: make_schedule validates what it returns; here an interpreter of its own follows the
// data, and no stage has more micro-batches in flight than the policy's row says, and some moment as many.
TEST(Schedule, HoldsForAllSmallSizes) {
  for (int S = 1; S <= 8; ++S)
    for (const Policy& policy : policies()) {
      const ChainOfRanks of(policy, S);
      const int stages = int(of.plan.stages.size());
      for (int M = 1; M <= 24; ++M) {
        if (fitting(policy, M, S) != M) continue;
        SCOPED_TRACE("S " + std::to_string(S) + ", M " + std::to_string(M) + ", " + std::string(policy.name));
        const Schedule schedule = make_schedule(of.profile, of.plan, policy, M);
        follow_data(schedule, of.profile, of.plan, policy.trains);
        const InFlight in_flight = policy.in_flight_on(S, stages / S, M);
        for (int s = 0; s < stages; ++s)
          EXPECT_EQ(most_in_flight(schedule, of.plan.stages[size_t(s)].ranks[0], s),
                    in_flight({M, stages, stages - s, 1}))
              << "stage " << s;
      }
    }
}

TEST(Schedule, HoldsForRandomNetworks) {
  std::mt19937 random(1);
  int crossing_orders = 0;  // plans in which a higher consumer sits on an earlier stage than a lower one
  for (int trial = 0; trial < 600; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const Profile profile = random_network(random, 4 + int(random() % 14));
    const Policy& policy = policies()[trial % policies().size()];
    const int chunks = chunks_of(policy), ranks = 1 + int(random() % (chunks == 1 ? 5 : 2));
    const Plan plan = on_ranks_of(policy, random_plan(random, profile, ranks * chunks));
    const auto stage_of = plan.stage_of(int(profile.nodes.size()));
    for (const auto& consumers : profile.consumers())
      for (size_t i = 1; i < consumers.size(); ++i)
        crossing_orders += stage_of[consumers[i]] < stage_of[consumers[i - 1]];
    const int microbatches = fitting(policy, 1 + int(random() % 9), ranks);
    const Schedule schedule = make_schedule(profile, plan, policy, microbatches);
    follow_data(schedule, profile, plan, policy.trains);
    const std::string text = print(schedule);
    EXPECT_EQ(print(parse_schedule(text, "text")), text);
    EXPECT_EQ(parse_schedule(text, "text").ranks, schedule.ranks);
  }
  EXPECT_GT(crossing_orders, 100);  // the sample does contain the hard case
}

TEST(Schedule, LargeOnesAreMadeInTime) {
  const Profile profile = chain(64);
  const Schedule schedule = make_schedule(profile, one_node_each(profile), Policy::one_f_one_b, 256);
  EXPECT_EQ(most_in_flight(schedule, 0, 0), 64);
}

TEST(Schedule, RefusesWhatItCannotServe) {
  const Profile profile = chain(2);
  Plan plan = one_node_each(profile);
  expect_error([&] { make_schedule(profile, plan, Policy::gpipe, 0); }, {"0 micro-batches"});
  plan.stages[1].ranks = {1, 2};
  expect_error([&] { make_schedule(profile, plan, Policy::gpipe, 1); },
               {"stage 1", "2 replicas", "1 micro-batch:", "rank 2"});
}

TEST(Schedule, APlanHasToFitThePlacement) {
  const Profile profile = chain(4);
  const Plan one_each = one_node_each(profile);
  const Plan loop = one_node_each(profile, {0, 1, 0, 1}), vee = one_node_each(profile, {0, 1, 1, 0});
  const Plan other_way = one_node_each(profile, {1, 0, 0, 1});
  const auto make = [&](const char* name, const Plan& plan, int M) {
    return [&profile, &plan, name, M] { make_schedule(profile, plan, policy(name), M); };
  };
  EXPECT_NO_THROW(make("interleaved", loop, 4)());
  EXPECT_NO_THROW(make("zb-v", other_way, 4)()) << "ranks are in any order";
  expect_error(make("1f1b", loop, 4), {"1f1b is an order for one stage a rank", "rank 0 2 stages"});
  expect_error(make("interleaved", vee, 4), {"interleaved", "rank 0 of 2 the stages 0 and 3"});
  expect_error(make("interleaved", one_each, 4), {"two or more stages a rank", "rank 0 of 4 the stage 0"});
  expect_error(make("v-half", loop, 4), {"v-half", "rank 0 of 2 the stages 0 and 2"});
  expect_error(make("interleaved", loop, 3),
               {"interleaved", "3 micro-batches on 2 ranks", "--microbatches 4"});
  expect_error(make("dualpipe-v", vee, 3), {"dualpipe-v", "3 micro-batches on 2 ranks", "--microbatches 4"});
  const Plan replicas = replicated(one_each, {2, 1, 1, 1});
  expect_error(make("zb-v", replicas, 4), {"zb-v is an order for one rank a stage", "stage 0"});
}

TEST(Schedule, ARowOfATableIsAPolicy) {
  for (const Policy& each : policies()) {
    SCOPED_TRACE(std::string(each.name));
    EXPECT_EQ(policy(each.name), each);
    EXPECT_EQ(is_training_policy(each.name), each.trains);
    EXPECT_EQ(std::ranges::count(training_policies(), each.name), each.trains);
    EXPECT_EQ(std::ranges::count(policies(), each), 1) << "a name of its own";
    EXPECT_EQ(each.citation.empty(), !each.trains) << "what one may train by comes from somewhere";
    const ChainOfRanks of(each, 3);
    const Schedule schedule = make_schedule(of.profile, of.plan, each, fitting(each, 6, 3));
    EXPECT_EQ(learns(schedule), each.trains);
    EXPECT_EQ(has_halves(schedule), each.halves);
  }
  EXPECT_THAT(training_policies_in_words(), ::testing::StartsWith("1f1b, gpipe, "));
  EXPECT_THAT(training_policies_in_words(), ::testing::EndsWith(" or " + training_policies().back()));
  EXPECT_EQ(policies_in_words(Placement::loop), "interleaved");
  expect_error([] { policy("zigzag"); }, {"zigzag", "1f1b", "gpipe"});
}

}  // namespace
}  // namespace antichain::test
