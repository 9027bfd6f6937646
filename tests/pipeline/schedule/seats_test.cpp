// These tests are about plans in which a rank has several stages: the schedules made for them, what is
// refused, and what the slots and the simulator make of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "pipeline/program/memory_shares.h"
#include "pipeline/program/program.h"
#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/message_order.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/data_flow.h"
#include "tests/pipeline/schedule/mutations.h"
#include "tests/pipeline/schedule/only.h"
#include "tests/pipeline/simulate/lane_rendezvous.h"

namespace antichain::test {
namespace {

// chain(4) in a V: rank 0 has stages 0 and 3, rank 1 has stages 1 and 2.
Plan vee(const Profile& profile) { return plan_of(profile, {{2}, {3}, {4}, {5}}, {0, 1, 1, 0}); }

// There are as many ranks as stages or fewer. Each stage goes to a random rank, and now and then to a second
// one as well.
Plan folded(std::mt19937& random, Plan plan) {
  const int stages = int(plan.stages.size()), ranks = 1 + int(random() % unsigned(stages));
  std::vector<int> of_stage(size_t(stages), 0);
  std::iota(of_stage.begin(), of_stage.begin() + ranks, 0);
  for (size_t s = size_t(ranks); s < of_stage.size(); ++s) of_stage[s] = int(random() % unsigned(ranks));
  std::shuffle(of_stage.begin(), of_stage.end(), random);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].ranks = {of_stage[s]};
    const int second = int(random() % unsigned(ranks));
    if (random() % 3 == 0 && second != of_stage[s]) plan.stages[s].ranks.push_back(second);
  }
  return plan;
}

// Returns a schedule of ZB-V's shape: each rank's stages come in the order of a depth-first walk, micro-batch
// after micro-batch, with halves apart.
constexpr const char* vee_text =
    "microbatches 2\n"
    "rank 0: 0L0 0F0 0S0:a2>1 0L1 0F1 0S1:a2>1 3L0 3R0:a4<1 3F0 3I0 3S0:g4.5>1 3L1 3R1:a4<1 3F1 3I1 "
    "3S1:g4.5>1 3W0 3W1 0R0:g2.3<1 0B0 0R1:g2.3<1 0B1 0U 3U\n"
    "rank 1: 1R0:a2<0 1F0 2F0 2S0:a4>0 1R1:a2<0 1F1 2F1 2S1:a4>0 2R0:g4.5<0 2B0 1B0 1S0:g2.3>0 2R1:g4.5<0 "
    "2B1 1B1 1S1:g2.3>0 1U 2U\n";

TEST(Seats, AScheduleFileWithTwoStagesOnARankIsValid) {
  const Profile profile = chain(4);
  const Plan plan = vee(profile);
  const Schedule schedule = parse_schedule(vee_text, "text");
  EXPECT_NO_THROW(validate(schedule, profile, plan));
  // Forwards take 1 s, halves 1 s each. Rank 1 is done with its forwards at 5 s; rank 0's input half of
  // micro-batch 1 ends at 7 s, and the last backward of rank 1 at 13 s, of rank 0 at 15 s.
  const Timeline timeline = simulate(schedule, plan, profile, {});
  EXPECT_DOUBLE_EQ(timeline.step_s, 15);
  EXPECT_EQ(timeline.busy_s, (std::vector<double>{12, 12}));
}

TEST(Seats, SchedulesHoldForRandomNetworks) {
  std::mt19937 random(31);
  int both_ways = 0, with_replicas = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Profile profile = random_network(random, 4 + int(random() % 8));
    const Plan plan = folded(random, random_plan(random, profile, 2 + int(random() % 4)));
    both_ways += has_several_stages_a_rank(plan) && plan.ranks() > 1;
    with_replicas += has_several_stages_a_rank(plan) && has_replicas(plan);
    for (const Policy& policy : {Policy::gpipe, Policy::forward_only}) {
      const Schedule schedule = make_schedule(profile, plan, policy, 2 + int(random() % 5));
      SCOPED_TRACE(print(schedule));
      follow_data(schedule, profile, plan, policy.trains);
      EXPECT_EQ(parse_schedule(print(schedule), "text").ranks, schedule.ranks);
    }
  }
  EXPECT_GT(both_ways, 100);
  EXPECT_GT(with_replicas, 50);
}

TEST(Seats, OneForwardOneBackwardIsForOneStageARank) {
  const Profile profile = chain(4);
  expect_error([&] { make_schedule(profile, vee(profile), Policy::one_f_one_b, 4); },
               {"1f1b is an order for one stage a rank", "2 stages", "choose another schedule"});
}

// Nothing is sent between stages 1 and 2, because rank 1 has both.
TEST(Seats, NoMessageStaysOnItsRank) {
  const Profile profile = chain(4);
  const Schedule schedule = make_schedule(profile, vee(profile), Policy::gpipe, 3);
  for (size_t r = 0; r < schedule.ranks.size(); ++r)
    for (const Action& a : schedule.ranks[r]) {
      EXPECT_NE(a.peer, int(r)) << print(a);
      EXPECT_NE(a.message.tensor, 3) << print(a);
    }
}

// image → 2 → 3 → 4 → 5, and 4 and 5 use 2 as well: rank 1 gets it twice, once for each of its stages.
TEST(Seats, EachStageOfARankGetsItsOwnMessage) {
  Profile profile = chain(4);
  profile.nodes[4].inputs = {2, 3};
  profile.nodes[5].inputs = {2, 4, 1};
  const Plan plan = plan_of(profile, {{2}, {3}, {4}, {5}}, {0, 0, 1, 1});
  const std::string text = print(make_schedule(profile, plan, Policy::gpipe, 1));
  EXPECT_NE(text.find("0F0 0S0:a2.4>1 0S0:a2.5>1 1F0"), std::string::npos) << text;
  EXPECT_NE(text.find("2R0:a2.4<0 2R0:a3<0 2F0 3L0 3R0:a2.5<0 3F0"), std::string::npos) << text;
}

TEST(Seats, MutationsAreRefused) {
  std::mt19937 random(32);
  Swaps swaps;
  for (int trial = 0; trial < 12; ++trial) {
    const Profile profile = random_network(random, 4 + int(random() % 5));
    const Plan plan = folded(random, random_plan(random, profile, 3));
    const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 2);
    mutate_every_action({profile, plan, schedule}, swaps);
  }
  EXPECT_GT(swaps.refused, 100);
  EXPECT_GT(swaps.harmless, 100);
}

TEST(Seats, AStageMayNotComeBeforeAnotherOfItsRankThatItUses) {
  const Profile profile = chain(4);
  const Plan plan = vee(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 1);
  const GoodSchedule good{profile, plan, schedule};
  expect_refused(good, "rank 1", "1F0 2F0 2S0:a4>0", "2F0 2S0:a4>0 1F0",
                 {"rank 1", "2F0 comes before 1F0, which it needs"});
  expect_refused(good, "rank 1", "2B0 1B0", "1B0 2B0", {"rank 1", "1B0 comes before 2B0, which it needs"});
  expect_refused(good, "rank 1", "2F0", "2F0 2S0:a3>1", {"2S0:a3>1", "the plan does not ask for"});
  expect_refused(good, "rank 0", "3U", "", {"rank 0", "3U is missing"});
}

// This schedule waits in a circle: rank 1 wants stage 3's gradient before it sends what stage 3 needs.
TEST(Seats, ADeadlockNamesRankAndAction) {
  const Profile profile = chain(4);
  const Plan plan = vee(profile);
  std::string text = vee_text;
  const std::string from = "2F0 2S0:a4>0 1R1:a2<0 1F1 2F1 2S1:a4>0 2R0:g4.5<0 2B0 1B0 1S0:g2.3>0";
  const std::string to = "2F0 2S0:a4>0 2R0:g4.5<0 2B0 1B0 1S0:g2.3>0 1R1:a2<0 1F1 2F1 2S1:a4>0";
  ASSERT_NE(text.find(from), std::string::npos);
  const std::string late = "0R0:g2.3<1 0B0 0R1:g2.3<1 0B1 ";
  text.replace(text.find(from), from.size(), to);
  EXPECT_NO_THROW(validate(parse_schedule(text, "text"), profile, plan)) << "depth first is fine";
  text.replace(text.find(late), late.size(), "");
  text.replace(text.find("3L1 3R1"), 0, late);
  expect_error([&] { validate(parse_schedule(text, "text"), profile, plan); }, {"deadlocks", "rank 0 waits"});
}

// Stage 2 of rank 1 uses what stage 1 outputs.
TEST(Seats, ShareTensorsWithinARank) {
  const Schedule schedule = parse_schedule(vee_text, "text");
  const auto copies = [&](bool rereads) {
    Profile profile = chain(4);
    for (ProfileNode& node : profile.nodes) node.cost.keeps_output = rereads;
    const Program program = compile(schedule, profile, vee(profile));
    const StageTensors &one = program.ranks[1].stages.at(1), &two = program.ranks[1].stages.at(2);
    EXPECT_EQ(one.output.at(3), two.output.at(3));
    const BufferId gradient = one.received.begin()->second;
    EXPECT_EQ(gradient, two.sent.begin()->second);
    EXPECT_EQ(program.ranks[1].buffers[size_t(gradient)].copies, 1);
    return program.ranks[1].buffers[size_t(one.output.at(3))].copies;
  };
  EXPECT_EQ(copies(true), 2) << "both forwards come before a backward";
  EXPECT_EQ(copies(false), 1);
}

// One rank that has all stages holds what one stage would, and between its stages no more than that: a chain
// whose backwards re-read nothing keeps one output, of the stage that runs.
TEST(Seats, MemoryIsThatOfAllStagesTogether) {
  const Profile profile = chain(4, {.forward_s = 1,
                                    .backward_input_s = 1,
                                    .backward_weight_s = 1,
                                    .output_bytes = 10,
                                    .param_bytes = 1000,
                                    .stash_bytes = 100,
                                    .keeps_output = true});
  const auto peak = [&](const Plan& plan) {
    return peak_memory_bytes(make_schedule(profile, plan, Policy::gpipe, 3), plan, profile);
  };
  const int64_t one = peak(plan_of(profile, {{2, 3, 4, 5}}))[0];
  const int64_t four = peak(plan_of(profile, {{2}, {3}, {4}, {5}}, {0, 0, 0, 0}))[0];
  EXPECT_GE(four, one) << "gradients between stages outlive their action";
  EXPECT_LE(four, one + 3 * 3 * 10);
  const std::vector<int64_t> two = peak(vee(profile));
  EXPECT_EQ(two.size(), 2u);
  for (const int64_t bytes : two) EXPECT_LT(bytes, one);
}

TEST(Seats, AStageThatIsOnARankNowAndThenIsRefused) {
  const Profile profile = chain(2);
  Plan plan = one_node_each(profile);
  plan.stages[1].ranks = {0, 1};
  const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 4);
  expect_error([&] { compile(schedule, profile, plan); },
               {"stages 0 and 1 on one rank for some micro-batches", "ranks of its own"});
}

// The order in which NCCL exchanges messages holds for ranks with several stages, too.
TEST(Seats, TheOrderOfMessagesIsSafe) {
  std::mt19937 random(33);
  for (int trial = 0; trial < 120; ++trial) {
    const Profile profile = random_network(random, 4 + int(random() % 8));
    const Plan plan = folded(random, random_plan(random, profile, 2 + int(random() % 4)));
    const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 2 + int(random() % 5));
    if (has_replicas(plan)) continue;  // compile() refuses some of these plans
    const Program program = compile(schedule, profile, plan);
    const std::vector<Exchange> order = message_order(program, plan, profile, {});
    for (const Host host : {Host::runs_ahead, Host::blocks})
      EXPECT_EQ(LaneRendezvous(program, issue_order(order, plan.ranks()), host).carry_out(), "");
    EXPECT_NO_THROW(simulate_in_order(program, plan, profile, {}, order));
  }
}

}  // namespace
}  // namespace antichain::test
