// Memory slots have golden values, and meet their definition on random schedules: a slot of a sent tensor may
// be used again when holding back the peer's recv would also hold back the action that uses it.
#include <gtest/gtest.h>

#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/policy.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/data_flow.h"
#include "tests/pipeline/schedule/only.h"

namespace antichain::test {
namespace {

std::vector<Slots> chain_slots(int stages, Policy policy, int microbatches) {
  const Profile profile = chain(stages);
  std::vector<Slots> all;
  for (const RankSlots& of_rank : slots(make_schedule(profile, one_node_each(profile), policy, microbatches)))
    all.push_back(only(of_rank));
  return all;
}

TEST(ScheduleSlots, OneForwardOneBackward) {
  // The numbers are micro-batches in flight, held, received gradients, sent activations and sent gradients.
  // Stage s knows that stage s + 1 has activation m when gradient m is back, which is before its forward m +
  // (S − s). It knows that stage s − 1 has gradient m when activation m + (S − s + 1) arrives; in the drain
  // none arrives any more, so that the last S − s + 1 gradients need slots of their own.
  const std::vector<Slots> expected = {{4, 0, 1, 4, 0}, {3, 0, 1, 3, 4}, {2, 0, 1, 2, 3}, {1, 0, 0, 0, 2}};
  EXPECT_EQ(chain_slots(4, Policy::one_f_one_b, 8), expected);
}

TEST(ScheduleSlots, GpipeHasThemAll) {
  const std::vector<Slots> expected = {{8, 0, 1, 8, 0}, {8, 0, 1, 8, 8}, {8, 0, 0, 0, 8}};
  EXPECT_EQ(chain_slots(3, Policy::gpipe, 8), expected);
}

// Nothing comes back in evaluation, so nothing is ever proved: what is sent has M slots, the rest one.
TEST(ScheduleSlots, Evaluation) {
  const std::vector<Slots> expected = {{1, 0, 0, 6, 0}, {1, 0, 0, 6, 0}, {1, 0, 0, 0, 0}};
  EXPECT_EQ(chain_slots(3, Policy::forward_only, 6), expected);
}

TEST(ScheduleSlots, OneStageSendsNothing) {
  EXPECT_EQ(chain_slots(1, Policy::one_f_one_b, 5), (std::vector<Slots>{{1, 0, 0, 0, 0}}));
}

TEST(ScheduleSlots, HeldGradientsWhereTheHalvesAreApart) {
  const Schedule schedule =
      parse_schedule("microbatches 3\nrank 0: 0L0 0F0 0L1 0F1 0I0 0I1 0L2 0F2 0W0 0I2 0W1 0W2 0U\n", "text");
  const Profile profile = chain(1);
  validate(schedule, profile, one_node_each(profile));
  EXPECT_EQ(slots(schedule), (std::vector<RankSlots>{{{0, {3, 2, 0, 0, 0}}}}));
}

TEST(ScheduleSlots, ReceivingAheadTakesMoreOfThem) {
  const Profile profile = chain(2);
  std::string text = print(make_schedule(profile, one_node_each(profile), Policy::one_f_one_b, 3));
  const std::string from = "1F0 1B0 1S0:g2.3>0 1L1 1R1:a2<0 1F1", to = "1L1 1R1:a2<0 1F0 1B0 1S0:g2.3>0 1F1";
  ASSERT_NE(text.find(from), std::string::npos) << text;
  text.replace(text.find(from), from.size(), to);
  EXPECT_EQ(only(slots(parse_schedule(text, "text"))[1]).microbatches, 2);
}

// The definition, carried out: take the peer's recv and everything after it away; what can no longer be
// reached certainly happens after it.
bool certainly_after(const Schedule& schedule, int peer, int recv_index, int rank, int index) {
  Schedule held_back = schedule;
  held_back.ranks[peer].resize(recv_index);
  return walk(held_back, match_messages(held_back), [](int, int) {})[rank] <= index;
}

// Returns whether k slots are safe for all sends of one flow from one rank, whose n-th micro-batch takes slot
// n mod k.
bool safe(const Schedule& schedule, int rank, int replicas, Flow flow, int k) {
  const auto& actions = schedule.ranks[rank];
  for (const Action& a : actions) {
    const int reuser = a.microbatch + k * replicas;
    if (a.verb != Verb::send || a.message.flow != flow || reuser >= schedule.microbatches) continue;
    const auto& theirs = schedule.ranks[a.peer];
    const auto recv = std::ranges::find_if(theirs, [&](const Action& r) {
      return r.verb == Verb::recv && r.peer == rank && r.message == a.message && r.microbatch == a.microbatch;
    });
    const Verb writes = flow == Flow::activation ? Verb::forward : Verb::backward;
    const auto write = std::ranges::find(actions, Action{writes, a.stage, reuser});
    if (!certainly_after(schedule, a.peer, int(recv - theirs.begin()), rank, int(write - actions.begin())))
      return false;
  }
  return true;
}

TEST(ScheduleSlots, AreTheFewestThatAreSafe) {
  std::mt19937 random(3);
  int below_all = 0, of_replicas = 0;
  for (int trial = 0; trial < 120; ++trial) {
    const Profile profile = random_network(random, 4 + int(random() % 6));
    Plan plan = random_plan(random, profile, 2 + int(random() % 3));
    if (trial % 2) plan = randomly_replicated(random, plan, 3);
    const int M = (trial % 2 ? 4 : 2) + int(random() % 5);
    const Schedule schedule =
        make_schedule(profile, plan, trial % 3 ? Policy::one_f_one_b : Policy::gpipe, M);
    const std::vector<RankSlots> all = slots(schedule);
    for (int r = 0; r < int(all.size()); ++r) {
      const int replicas = int(stage_of_rank(plan, r).ranks.size()), own = (M + replicas - 1) / replicas;
      for (const auto& [flow, k] : {std::pair(Flow::activation, only(all[r]).sent_activations),
                                    std::pair(Flow::gradient, only(all[r]).sent_gradients)}) {
        if (k == 0) continue;
        EXPECT_LE(k, own);
        EXPECT_TRUE(safe(schedule, r, replicas, flow, k));
        EXPECT_FALSE(k > 1 && safe(schedule, r, replicas, flow, k - 1));
        below_all += k<own, of_replicas += replicas> 1;
      }
    }
  }
  EXPECT_GT(below_all, 50);
  EXPECT_GT(of_replicas, 60);
}

TEST(ScheduleSlots, TooFewAreRefused) {
  const Profile profile = chain(3);
  const Schedule schedule = make_schedule(profile, one_node_each(profile), Policy::one_f_one_b, 6);
  const std::vector<RankSlots> enough = slots(schedule);
  validate_slots(schedule, enough);
  const auto refused = [&](int rank, int Slots::*field, std::initializer_list<std::string> words) {
    std::vector<RankSlots> fewer = enough;
    --(fewer[rank].at(rank).*field);
    expect_error([&] { validate_slots(schedule, fewer); }, words);
  };
  refused(0, &Slots::microbatches, {"rank 0", "0L2", "2 slots", "in flight", "3 are needed"});
  refused(1, &Slots::received_gradients, {"rank 1", "1R0:g3.4<2", "received gradients"});
  refused(0, &Slots::sent_activations, {"rank 0", "0S0:a2>1", "2 slots", "wait for rank 1"});
  refused(2, &Slots::sent_gradients, {"rank 2", "2S0:g3.4>1", "wait for rank 1"});
}

// By what they are, not by their order; what has no other half stays alone.
TEST(MatchMessages, FindsTheOtherHalf) {
  const Schedule schedule = parse_schedule(
      "microbatches 2\n"
      "rank 0: 0S0:a1>1 0S0:a2>1 0S1:a1>1 0S1:a3>1\n"
      "rank 1: 1R0:a2<0 1R1:a1<0 1R0:a1<0 1R1:a2<0\n",
      "text");
  const Partners partners = match_messages(schedule);
  EXPECT_EQ(partners.of[0], (std::vector<int>{2, 0, 1, -1}));
  EXPECT_EQ(partners.of[1], (std::vector<int>{1, 2, 0, -1}));
  EXPECT_TRUE(partners.meetings.empty());
}

TEST(HappensBefore, FollowsProgramOrderAndMessages) {
  const Schedule schedule = parse_schedule(
      "microbatches 2\n"
      "rank 0: 0F0 0S0:a1>1 0F1 0R0:g1.2<1 0B0\n"
      "rank 1: 1F1 1R0:a1<0 1F0 1S0:g1.2>0 1B0\n",
      "text");
  const HappensBefore before(schedule, match_messages(schedule));
  EXPECT_TRUE(before(0, 0, 0, 2));   // 0F0 before 0F1: program order
  EXPECT_FALSE(before(0, 2, 0, 2));  // nothing is before itself
  EXPECT_TRUE(before(0, 0, 1, 2));   // 0F0 before 1F0: a message
  EXPECT_FALSE(before(0, 0, 1, 0));  // 1F1 may be anywhere
  EXPECT_FALSE(before(0, 2, 1, 4));  // 0F1 and 1B0 too
  EXPECT_TRUE(before(1, 1, 0, 4));   // the recv before 0B0
  EXPECT_FALSE(before(1, 4, 0, 4));
}

}  // namespace
}  // namespace antichain::test
