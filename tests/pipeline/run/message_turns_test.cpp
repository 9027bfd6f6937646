// Each rank tells a transport with one order its turns. Here they are those of schedules with replicas, whose
// all-reduces are two groups of messages. A stand-in with rendezvous semantics carries them out: nobody waits
// forever, and every send meets its own receive. Turns made otherwise are found.
#include "pipeline/run/message_turns.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/message_order.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/sum_turns.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/schedule/only.h"
#include "tests/pipeline/simulate/turn_rendezvous.h"

namespace antichain::test {
namespace {

constexpr Host hosts[] = {Host::blocks, Host::runs_ahead};

using Turns = std::vector<std::vector<Turn>>;  // of each rank

Turns turns_of_all(const Program& program, const Plan& plan, const Profile& profile, const Link& link,
                   bool statistics) {
  const int ranks = int(program.ranks.size());
  const auto order = issue_order(message_order(program, plan, profile, one_link(link)), ranks);
  Turns turns;
  for (int r = 0; r < ranks; ++r)
    turns.push_back(turns_of(order[size_t(r)], program.ranks[size_t(r)], [&](int bucket, bool scatters) {
      return sum_turns(stage_of_rank(plan, r).ranks, r, program.channels, program.schedule->microbatches,
                       statistics, bucket, scatters);
    }));
  return turns;
}

void expect_safe(const Program& program, const Turns& turns) {
  for (const Host host : hosts)
    ASSERT_EQ(TurnRendezvous(program, turns, host).carry_out(), "") << print(*program.schedule);
}

TEST(MessageTurns, AreSafeForAllSmallNumbersOfReplicas) {
  for (const NodeCost& cost : {NodeCost{.forward_s = 1, .backward_input_s = 1, .backward_weight_s = 1},
                               NodeCost{}})  // nothing takes time: all ties
    for (int a = 1; a <= 4; ++a)
      for (int b = 1; b <= 4; ++b)
        for (const int c : {1, 3})
          for (const int M : {std::max({a, b, c}), 5, 12})
            for (const Policy& policy : policies_with_replicas()) {
              SCOPED_TRACE(fmt::format("{}, {} and {} replicas, M {}, {}", a, b, c, M, policy.name));
              const Profile profile = chain(3, cost);
              const Plan plan = replicated(one_node_each(profile), {a, b, c});
              if (fitting(policy, M, plan.ranks()) != M) continue;
              const Schedule schedule = make_schedule(profile, plan, policy, M);
              const Program program = compile(schedule, profile, plan);
              expect_safe(program, turns_of_all(program, plan, profile, links[size_t(M) % std::size(links)],
                                                a % 2 == 0));
            }
}

struct RandomTurns {
  explicit RandomTurns(int seed)
      : random(unsigned(seed)),
        profile(weighted(random_network(random, 1 + seed % 4 + 2 + int(random() % 8)), seed)),
        plan(randomly_replicated(random, random_plan(random, profile, 1 + seed % 4), 4)),
        schedule(make_schedule(profile, plan, policies()[seed % 3 == 2], 4 + int(random() % 9))),
        program(compile(schedule, profile, plan)),
        turns(turns_of_all(program, plan, profile, links[size_t(seed) % std::size(links)], seed % 2)) {}

  static Profile weighted(Profile profile, int seed) {
    std::mt19937 random{unsigned(seed)};
    if (seed % 2) add_weights(profile, random);
    return profile;
  }

  // Returns whether two stages that are not next to each other have a message.
  bool skips() const {
    const auto stage_of = plan.stage_of(int(profile.nodes.size()));
    for (size_t n = 0; n < profile.nodes.size(); ++n)
      for (const int x : profile.nodes[n].inputs)
        if (stage_of[size_t(x)] >= 0 && stage_of[n] > stage_of[size_t(x)] + 1) return true;
    return false;
  }
  // A rank that has replicas, and where its all-reduce begins; −1 where there is none.
  std::pair<int, size_t> replica() const {
    for (size_t r = 0; r < turns.size(); ++r)
      for (size_t i = 0; i < turns[r].size(); ++i)
        if (turns[r][i].group != 0) return {int(r), i};
    return {-1, 0};
  }
  bool stuck(const Turns& wrong, Host host) const {
    return !TurnRendezvous(program, wrong, host).carry_out().empty();
  }

  std::mt19937 random;
  const Profile profile;
  const Plan plan;
  const Schedule schedule;
  const Program program;
  const Turns turns;
};

TEST(MessageTurns, AreSafeForRandomNetworksWithSkips) {
  int skips = 0, sums = 0;
  for (int seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RandomTurns c(seed);
    expect_safe(c.program, c.turns);
    skips += c.skips();
    sums += int(match_messages(c.schedule).meetings.size());
  }
  EXPECT_GT(skips, 50);  // the sample does contain the hard cases
  EXPECT_GT(sums, 300);
}

// Every replica sends first: each waits for the other one's receive, which is behind its send.
TEST(MessageTurns, WithoutGroupsDeadlock) {
  int trials = 0;
  for (int seed = 0; seed < 60; ++seed) {
    const RandomTurns c(seed);
    if (c.replica().first < 0) continue;
    Turns wrong = c.turns;
    for (auto& turns : wrong)
      for (Turn& turn : turns) turn.group = 0;
    for (const Host host : hosts) EXPECT_TRUE(c.stuck(wrong, host)) << seed;
    ++trials;
  }
  EXPECT_GT(trials, 30);
}

// One replica exchanges sums before gradients, or gradients before the messages that it computes them from.
TEST(MessageTurns, InAnotherOrderOnOneReplicaAreFound) {
  int trials = 0, early = 0;
  for (int seed = 0; seed < 60; ++seed) {
    const RandomTurns c(seed);
    const auto [r, first] = c.replica();
    if (r < 0) continue;
    Turns swapped = c.turns, sooner = c.turns;
    std::stable_partition(swapped[size_t(r)].begin() + int(first), swapped[size_t(r)].end(),
                          [](const Turn& turn) { return turn.group != 0 && turn.group % 2 == 0; });
    const auto begin = sooner[size_t(r)].begin();
    const bool needs = std::any_of(begin, begin + int(first), [](const Turn& turn) { return !turn.sends; });
    std::rotate(begin, begin + int(first), sooner[size_t(r)].end());
    for (const Host host : hosts) {
      EXPECT_TRUE(c.stuck(swapped, host)) << seed;
      if (needs) {
        EXPECT_TRUE(c.stuck(sooner, host)) << seed;
      }
    }
    ++trials;
    early += needs;
  }
  EXPECT_GT(trials, 30);
  EXPECT_GT(early, 20);
}

// Within a group messages of two ranks have no names, either.
TEST(MessageTurns, StatisticsInAnotherOrderAreFound) {
  const Profile profile = chain(1);
  const Plan plan = replicated(one_node_each(profile), {2});
  const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 4);
  const Program program = compile(schedule, profile, plan);
  Turns turns = turns_of_all(program, plan, profile, {}, true);
  // Gradients, and statistics of two micro-batches, to and from rank 1; then the sums.
  ASSERT_EQ(turns[0].size(), 8u);
  EXPECT_EQ(TurnRendezvous(program, turns, Host::blocks).carry_out(), "");
  std::swap(turns[0][1], turns[0][2]);
  EXPECT_EQ(TurnRendezvous(program, turns, Host::blocks).carry_out(),
            "rank 0 sends 2.2 to rank 1, which receives 2.0: another message");
}

TEST(MessageTurns, TheReportNamesWhoWaitsWhere) {
  const Profile profile = chain(1);
  const Plan plan = replicated(one_node_each(profile), {2});
  const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 2);
  const Program program = compile(schedule, profile, plan);
  Turns turns = turns_of_all(program, plan, profile, {}, false);
  turns[1].pop_back();
  EXPECT_EQ(TurnRendezvous(program, turns, Host::runs_ahead).carry_out(),
            "rank 0 stands in 0A, sends 1.0 to rank 1\n");
}

}  // namespace
}  // namespace antichain::test
