// In a vote all ranks agree before any of them updates. Votes are parsed, validated, simulated and drawn.
#include <gtest/gtest.h>

#include <functional>

#include "pipeline/program/program.h"
#include "pipeline/schedule/lane.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/message_order.h"
#include "pipeline/simulate/simulate.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/simulate/rounding.h"

namespace antichain::test {
namespace {

struct Voting {
  Profile profile = chain(3, {.forward_s = 1, .backward_input_s = 2, .update_s = 1, .output_bytes = 10});
  Plan plan = one_node_each(profile);
  Schedule schedule = with_votes(make_schedule(profile, plan, Policy::one_f_one_b, 4));
  std::vector<Action>& rank(int r) { return schedule.ranks[size_t(r)]; }
  size_t vote(int r) {
    return size_t(std::ranges::find(rank(r), Verb::vote, &Action::verb) - rank(r).begin());
  }
};

TEST(Vote, ComesBeforeTheUpdateOfEveryRank) {
  Voting v;
  validate(v.schedule, v.profile, v.plan);
  EXPECT_TRUE(has_votes(v.schedule));
  for (int r = 0; r < 3; ++r) EXPECT_EQ(v.rank(r)[v.vote(r) + 1].verb, Verb::update);
  EXPECT_EQ(with_votes(v.schedule).ranks, v.schedule.ranks) << "a second one changes nothing";
  EXPECT_FALSE(has_votes(make_schedule(v.profile, v.plan, Policy::one_f_one_b, 4)));
}

TEST(Vote, IsOneOfARankWithSeveralStages) {
  const Profile profile = chain(4);
  const Plan plan = plan_of(profile, {{2}, {3}, {4}, {5}}, {0, 1, 1, 0});
  const Schedule schedule = with_votes(make_schedule(profile, plan, policy("zb-v"), 4));
  validate(schedule, profile, plan);
  for (const auto& actions : schedule.ranks)
    EXPECT_EQ(std::ranges::count(actions, Verb::vote, &Action::verb), 1);
}

TEST(Vote, GoesThroughText) {
  Voting v;
  const std::string text = print(v.schedule);
  EXPECT_NE(text.find("V vote of all ranks whether to update"), std::string::npos);
  EXPECT_NE(text.find(" 0V 0U"), std::string::npos);
  EXPECT_EQ(parse_schedule(text, "text").ranks, v.schedule.ranks);
  const Schedule without = make_schedule(v.profile, v.plan, Policy::one_f_one_b, 4);
  EXPECT_EQ(print(without).find("vote"), std::string::npos) << "the legend has what is there";
}

TEST(Vote, MustBeEveryRanksAndInItsPlace) {
  const auto refused = [](const std::function<void(Voting&)>& spoil, const char* why) {
    Voting v;
    spoil(v);
    expect_error([&] { validate(v.schedule, v.profile, v.plan); }, {"rank 1", why});
  };
  refused([](Voting& v) { v.rank(1).erase(v.rank(1).begin() + int(v.vote(1))); }, "there is no vote");
  refused([](Voting& v) { v.rank(1).push_back(v.rank(1)[v.vote(1)]); }, "there twice");
  refused([](Voting& v) { std::swap(v.rank(1)[v.vote(1)], v.rank(1)[v.vote(1) + 1]); },
          "comes before the vote that allows it");
  refused(
      [](Voting& v) {
        const Action vote = v.rank(1)[v.vote(1)];
        v.rank(1).erase(v.rank(1).begin() + int(v.vote(1)));
        v.rank(1).insert(v.rank(1).begin(), vote);
      },
      "comes after the vote");
}

// The last rank to have its gradients is rank 0, after 4 micro-batches on 3 stages: (4 + 2) x 3 s. Its word
// reaches all after one latency, and every update takes 1 s.
TEST(Vote, WaitsForTheLastRankAndTwoLatencies) {
  Voting v;
  const Timeline free = simulate(v.schedule, v.plan, v.profile, {});
  EXPECT_DOUBLE_EQ(free.step_s, 18 + 1);
  for (const Event& e : free.events) {
    if (e.action.verb == Verb::update) {
      EXPECT_DOUBLE_EQ(e.start_s, 18);
    }
  }
  const Cluster slow = one_link({.latency_s = 0.25});
  const Schedule without = make_schedule(v.profile, v.plan, Policy::one_f_one_b, 4);
  const double all_there_s = simulate(without, v.plan, v.profile, slow).step_s - 1;  // rank 0's
  const Timeline timeline = simulate(v.schedule, v.plan, v.profile, slow);
  EXPECT_DOUBLE_EQ(timeline.step_s, all_there_s + 0.25 + 1);
}

TEST(Vote, LeavesNothingToOverlap) {
  Profile profile = chain(4);
  const Plan plan = one_node_each(profile);
  const Schedule without = make_schedule(profile, plan, policy("zb-h2"), 8);
  const Timeline overlap = simulate(without, plan, profile, {}, Steps::overlapped);
  const Timeline voted = simulate(with_votes(without), plan, profile, {}, Steps::overlapped);
  EXPECT_LT(overlap.period_s, overlap.step_s);
  EXPECT_DOUBLE_EQ(voted.period_s, voted.step_s);
}

TEST(Vote, IsThereInTheOrderOfMessagesToo) {
  Voting v;
  const Cluster cluster = one_link({.bytes_per_s = 100, .latency_s = 0.25});
  const Program program = compile(v.schedule, v.profile, v.plan);
  const auto order = message_order(program, v.plan, v.profile, cluster);
  const Schedule without = make_schedule(v.profile, v.plan, Policy::one_f_one_b, 4);
  EXPECT_EQ(order.size(),
            message_order(compile(without, v.profile, v.plan), v.plan, v.profile, cluster).size());
  const auto own_link = [](int, int, Flow) { return no_lane; };
  const Timeline in_order = simulate_in_order(program, v.plan, v.profile, cluster, order, own_link);
  const Timeline free = simulate(v.schedule, v.plan, v.profile, cluster);
  EXPECT_NEAR(in_order.step_s, free.step_s, rounding * free.step_s);
}

TEST(Vote, IsDrawn) {
  Voting v;
  const std::string picture = draw(simulate(v.schedule, v.plan, v.profile, {}), 3, 80);
  EXPECT_NE(picture.find("??#"), std::string::npos) << picture;
  EXPECT_NE(picture.find("? vote"), std::string::npos);
}

}  // namespace
}  // namespace antichain::test
