// These are schedules of plans with replicas: their order by hand, and their validity and slots for all small
// sizes and random networks.
#include <gtest/gtest.h>

#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_passes.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/data_flow.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/schedule/only.h"

namespace antichain::test {
namespace {

std::string only_ranks(const Schedule& schedule) {
  const std::string text = print(schedule);
  return text.substr(text.find("rank 0:"));
}

// Two devices share the first stage: 3 devices from there on, so each has 2 micro-batches in flight.
TEST(Replicas, TakeMicrobatchesInTurn) {
  const Profile profile = chain(2);
  const Plan plan = replicated(one_node_each(profile), {2, 1});
  EXPECT_EQ(only_ranks(make_schedule(profile, plan, Policy::one_f_one_b, 5)),
            "rank 0: 0L0 0F0 0S0:a2>2 0L2 0F2 0S2:a2>2 0R0:g2.3<2 0B0 0L4 0F4 0S4:a2>2 "
            "0R2:g2.3<2 0B2 0R4:g2.3<2 0B4 0A 0U\n"
            "rank 1: 0L1 0F1 0S1:a2>2 0L3 0F3 0S3:a2>2 0R1:g2.3<2 0B1 0R3:g2.3<2 0B3 0A 0U\n"
            "rank 2: 1L0 1R0:a2<0 1F0 1B0 1S0:g2.3>0 1L1 1R1:a2<1 1F1 1B1 1S1:g2.3>1 1L2 1R2:a2<0 1F2 1B2 "
            "1S2:g2.3>0 1L3 1R3:a2<1 1F3 1B3 1S3:g2.3>1 1L4 1R4:a2<0 1F4 1B4 1S4:g2.3>0 1U\n");
}

TEST(Replicas, OfEveryStageMeetByMicrobatch) {
  const Profile profile = chain(2);
  const Plan plan = replicated(one_node_each(profile), {2, 3}, {4, 0, 1, 3, 2});
  EXPECT_EQ(only_ranks(make_schedule(profile, plan, Policy::gpipe, 3)),
            "rank 0: 0L1 0F1 0S1:a2>3 0R1:g2.3<3 0B1 0A 0U\n"
            "rank 1: 1L0 1R0:a2<4 1F0 1B0 1S0:g2.3>4 1A 1U\n"
            "rank 2: 1L2 1R2:a2<4 1F2 1B2 1S2:g2.3>4 1A 1U\n"
            "rank 3: 1L1 1R1:a2<0 1F1 1B1 1S1:g2.3>0 1A 1U\n"
            "rank 4: 0L0 0F0 0S0:a2>1 0L2 0F2 0S2:a2>2 0R0:g2.3<1 0B0 0R2:g2.3<2 0B2 0A 0U\n");
  EXPECT_EQ(only_ranks(make_schedule(profile, plan, Policy::forward_only, 3)),
            "rank 0: 0L1 0F1 0S1:a2>3\n"
            "rank 1: 1L0 1R0:a2<4 1F0\n"
            "rank 2: 1L2 1R2:a2<4 1F2\n"
            "rank 3: 1L1 1R1:a2<0 1F1\n"
            "rank 4: 0L0 0F0 0S0:a2>1 0L2 0F2 0S2:a2>2\n");
}

TEST(Replicas, TheLegendNamesTheAllReduceWhereThereIsOne) {
  const Profile profile = chain(1);
  const Plan plan = one_node_each(profile);
  const auto legend = [&](const Plan& plan) {
    return print(make_schedule(profile, plan, Policy::gpipe, 2)).substr(0, 200);
  };
  EXPECT_EQ(legend(plan).find("all-reduce"), std::string::npos);
  EXPECT_NE(legend(replicated(plan, {2})).find("S send, A all-reduce over the replicas, U update\n"),
            std::string::npos);
}

// Every number of replicas of two stages, every small M: never stuck, every gradient once; each replica has
// ceil(devices left / replicas) micro-batches in flight, or all it has.
TEST(Replicas, HoldForAllSmallSizes) {
  const Profile profile = chain(3);
  for (int a = 1; a <= 4; ++a)
    for (int b = 1; b <= 4; ++b)
      for (int M = std::max(a, b); M <= 13; ++M)
        for (const Policy& policy : policies_with_replicas()) {
          SCOPED_TRACE(fmt::format("{} and {} replicas, M {}, {}", a, b, M, policy.name));
          if (fitting(policy, M, a + b + 1) != M) continue;
          const Plan plan = replicated(one_node_each(profile), {a, b, 1});
          const Schedule schedule = make_schedule(profile, plan, policy, M);
          follow_data(schedule, profile, plan, policy != Policy::forward_only);
          if (policy.asynchronous()) continue;  // as many as where it has no replicas
          const auto expect_in_flight = [&](int rank, int i, int r, int devices_left) {
            const int mine = (M - i + r - 1) / r;
            EXPECT_EQ(most_in_flight(schedule, rank,
                                     rank < a       ? 0
                                     : rank < a + b ? 1
                                                    : 2),
                      policy == Policy::one_f_one_b ? std::min(mine, (devices_left + r - 1) / r)
                      : policy == Policy::gpipe     ? mine
                                                    : 1);
          };
          for (int i = 0; i < a; ++i) expect_in_flight(i, i, a, a + b + 1);
          for (int i = 0; i < b; ++i) expect_in_flight(a + i, i, b, b + 1);
          expect_in_flight(a + b, 0, 1, 1);
        }
}

TEST(Replicas, HoldForRandomNetworks) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 600; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const Profile profile = random_network(random, 4 + int(random() % 14));
    const Plan plan =
        randomly_replicated(random, random_plan(random, profile, 1 + int(random() % 5)), 1 + trial % 5);
    const std::vector<Policy> all = policies_with_replicas();
    const Policy& policy = all[size_t(trial) % all.size()];
    const int M = fitting(policy, 5 + int(random() % 12), plan.ranks());
    const Schedule schedule = make_schedule(profile, plan, policy, M);
    follow_data(schedule, profile, plan, policy != Policy::forward_only);
    const std::string text = print(schedule);
    EXPECT_EQ(parse_schedule(text, "text").ranks, schedule.ranks);
    EXPECT_EQ(print(parse_schedule(text, "text")), text);
  }
}

TEST(Replicas, WithoutAMicrobatchAreRefused) {
  const Profile profile = chain(2);
  const Plan plan = replicated(one_node_each(profile), {1, 4});
  for (const Policy& policy : policies_with_replicas())
    expect_error([&] { make_schedule(profile, plan, policy, 3); },
                 {"stage 1", "4 replicas", "3 micro-batches", "rank 4 would have nothing to do"});
}

TEST(Replicas, MessagesBeyondWhatCanBeSimulatedAreRefused) {
  Crossing crossing{.activations = std::vector<Route>(1'000), .ranks = {{0}, {1}}};
  EXPECT_NO_THROW(check_seats(crossing, 2'000));
  crossing.gradients.resize(1);
  expect_error([&] { check_seats(crossing, 2'000); },
               {"2002000 tensors", "2 stages", "fewer stages or micro-batches"});
}

// An all-reduce is where replicas wait for each other: what one did before it, all know after it.
TEST(Replicas, MeetInTheAllReduce) {
  const Schedule schedule = parse_schedule(
      "microbatches 2\n"
      "rank 0: 0F0 0B0 0A 0F0\n"
      "rank 1: 0F1 0B1 0A 0F1\n",
      "text");
  const HappensBefore before(schedule, match_messages(schedule));
  EXPECT_TRUE(before(1, 1, 0, 3));   // rank 1's 0B1 before what rank 0 does after 0A
  EXPECT_FALSE(before(1, 1, 0, 1));  // and not before what it does ahead of it
  EXPECT_FALSE(before(1, 3, 0, 3));
}

}  // namespace
}  // namespace antichain::test
