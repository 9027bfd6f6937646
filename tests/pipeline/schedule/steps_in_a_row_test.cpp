// Asynchronous schedules are of several steps in a row. They are parsed, validated, cut short, compiled and
// simulated, and each pass reads the version of the weights that the delay of its stage says.
#include <gtest/gtest.h>

#include "pipeline/planning/schedule_choice.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_csv.h"
#include "pipeline/simulate/simulate.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/fitting.h"

namespace antichain::test {
namespace {

struct InARow {
  explicit InARow(const Policy& policy, int ranks = 3, int steps = 5)
      : profile(chain(ranks, {.forward_s = 1,
                              .backward_input_s = 1,
                              .backward_weight_s = 1,
                              .update_s = 0.1,
                              .output_bytes = 8,
                              .param_bytes = 4})),
        plan(one_node_each(profile)),
        schedule(make_schedule(profile, plan, policy, fitting(policy, ranks + 1, ranks), steps)) {}
  Profile profile;
  Plan plan;
  Schedule schedule;
};

TEST(StepsInARow, FlowWithoutADrain) {
  const InARow of(policy("pipedream"));
  EXPECT_NE(print(of.schedule).find("microbatches 5\nsteps 5\ndelays 2 1 0\n"), std::string::npos)
      << print(of.schedule);
  std::string first;
  for (const Action& a : of.schedule.ranks[0])
    if (computes(a.verb) || a.verb == Verb::update) first += print(a) + " ";
  EXPECT_EQ(first, "0F0 0F1 0F2 0B0 0U 0F3 0B1 0U 0F4 0B2 0U 0B3 0U 0B4 0U ");
  EXPECT_NE(print(InARow(policy("stale")).schedule).find("forward-delays 2 1 0\n"), std::string::npos);
  EXPECT_NE(print(InARow(policy("2bw")).schedule).find("delays 1 1 1\n"), std::string::npos);
}

TEST(StepsInARow, PrintAndParse) {
  for (const Policy& policy : asynchronous_policies()) {
    const Schedule schedule = InARow(policy).schedule;
    const Schedule again = parse_schedule(print(schedule), "text");
    EXPECT_EQ(print(again), print(schedule));
    EXPECT_EQ(again.delays, schedule.delays);
    EXPECT_EQ(again.stashes, schedule.stashes);
    EXPECT_EQ(again.steps, schedule.steps);
    expect_error([&] { to_csv(schedule); }, {"CSV", "older weights"});
  }
  const auto refused = [](const std::string& text, std::initializer_list<std::string> words) {
    expect_error([&] { parse_schedule(text, "x"); }, words);
  };
  refused("steps 2\nmicrobatches 4\nrank 0: 0F0\n", {"x:1", "comes first"});
  refused("microbatches 4\nsteps 3\nrank 0: 0F0\n", {"x:2", "share 4 micro-batches"});
  refused("microbatches 4\ndelays 1 x\nrank 0: 0F0\n", {"x:2", "not a delay"});
  refused("microbatches 4\ndelays 1\nforward-delays 1\nrank 0: 0F0\n", {"x:3", "twice"});
  refused("microbatches 4\ndelays\nrank 0: 0F0\n", {"x:2", "missing"});
  refused("microbatches 4\npredict xpipe\n", {"x:2", "delays", "first"});
  refused("microbatches 4\ndelays 1\npredict rain\n", {"x:3", "no such prediction"});
  refused("microbatches 4\ndelays 1\npredict pipeoptim\n", {"x:3", "forward-delays"});
}

TEST(StepsInARow, AreValidated) {
  InARow of(policy("2bw"));
  std::vector<Action>& actions = of.schedule.ranks[1];
  const auto refused = [&](std::initializer_list<std::string> words) {
    expect_error([&] { validate(of.schedule, of.profile, of.plan); }, words);
  };
  const Schedule right = of.schedule;
  const auto update = std::ranges::find(actions, Verb::update, &Action::verb);
  std::rotate(update, update + 1, actions.end());
  refused({"rank 1", "between the updates of its step"});
  of.schedule = right;
  actions.erase(std::ranges::find(actions, Verb::update, &Action::verb));
  refused({"rank 1", "4 times", "5 steps"});
  of.schedule = right;
  actions.push_back({Verb::update, 1});
  refused({"rank 1", "twice"});
  of.schedule = with_votes(right);
  refused({"vote", "several steps"});
  of.schedule = right;
  of.schedule.delays.pop_back();
  refused({"2 delays", "3 stages"});
  of.schedule = right;
  of.schedule.steps = 3;
  refused({"20 micro-batches", "3 equal steps"});
}

TEST(StepsInARow, ReadTheVersionThatTheirStepSays) {
  for (const Policy& policy : asynchronous_policies())
    for (const int ranks : {1, 2, 4}) {
      const InARow of(policy, ranks);
      const Program program = compile(of.schedule, of.profile, of.plan);
      for (const RankProgram& rank : program.ranks) {
        int updates = 0, forwards = 0;
        for (const Instruction& i : rank.instructions) {
          const int step = i.microbatch / of.schedule.microbatches_of_step();
          const bool backward = i.verb == Verb::backward;
          const int delay = backward && !policy.stashes ? 0 : policy.delay(i.stage, ranks);
          if (backward || i.verb == Verb::forward) {
            EXPECT_EQ(updates - i.weights.behind, step - delay) << policy.name << print(i);
            EXPECT_LE(i.weights.behind, of.schedule.delay(i.stage));
          }
          forwards += i.verb == Verb::forward;
          if (i.verb == Verb::update) {
            EXPECT_EQ(i.step, updates);
            ++updates;
          }
        }
        EXPECT_EQ(updates, 5);
        EXPECT_EQ(forwards, of.schedule.microbatches);
      }
    }
  InARow of(policy("pipedream"));
  of.schedule.delays[0] = 1;
  expect_error([&] { compile(of.schedule, of.profile, of.plan); }, {"0F2", "no update before it has made"});
}

// Rings are those of the whole row, whose proofs hold for less of it as well.
TEST(StepsInARow, FewerOfThemNeedNoMoreMemory) {
  std::mt19937 random(3);
  for (const Policy& policy : asynchronous_policies())
    for (int trial = 0; trial < 10; ++trial) {
      const int ranks = 2 + trial % 3;
      const Profile profile = random_network(random, 8 + trial);
      const Plan plan = random_plan(random, profile, ranks);
      const Schedule all = make_schedule(profile, plan, policy, fitting(policy, ranks, ranks), 12);
      const Program whole = compile(all, profile, plan);
      for (const int steps : {1, 2, 3, 5, 8, 11}) {
        const Schedule some = first_steps(all, steps);
        validate(some, profile, plan);
        const Program part = compile(some, profile, plan);
        for (size_t r = 0; r < part.ranks.size(); ++r)
          for (size_t b = 0; b < part.ranks[r].buffers.size(); ++b)
            EXPECT_LE(part.ranks[r].buffers[b].copies, whole.ranks[r].buffers[b].copies)
                << policy.name << ", " << steps << " steps, rank " << r << ", buffer " << b;
      }
    }
}

TEST(StepsInARow, CountTheBytesOfTheirVersions) {
  const InARow of(policy("pipedream"));
  const auto shares = memory_shares(of.schedule, of.plan, of.profile);
  EXPECT_EQ(shares[0].versions, 2 * 4);
  EXPECT_EQ(shares[1].versions, 1 * 4);
  EXPECT_EQ(shares[2].versions, 0);
  EXPECT_EQ(shares[0].held(), 3 * 4 + 2 * 4);
}

// A micro-batch takes 3 and an update 0.1. The row's own fill and drain are a hundredth.
TEST(StepsInARow, TakeAsLongAsTheSlowestStage) {
  for (const Policy& policy : asynchronous_policies())
    for (const int ranks : {2, 4, 8}) {
      const InARow of(policy, ranks);
      const int M = fitting(policy, 8, ranks);
      const ScheduleChoice choice{.name = std::string(policy.name)};
      const Schedule schedule = choice.schedule(of.profile, of.plan, {.stages = ranks, .microbatches = M});
      const Timeline timeline = simulate(schedule, of.plan, of.profile, {}, Steps::overlapped);
      EXPECT_GE(timeline.period_s, M * 3 + 0.1);
      EXPECT_LE(timeline.period_s, (M * 3 + 0.1) * 1.011) << policy.name << " on " << ranks;
      EXPECT_EQ(timeline.period_s, pace(of.profile, of.plan, policy, M, {}, Steps::overlapped).period_s);
      EXPECT_LT(timeline.bubble_fraction(), 0.011);
    }
}

// A stage of twice the work has two replicas. Without a drain a step takes the slowest rank's own work and a
// tenth that it waits for other replicas; with drains it takes a third more than that.
TEST(StepsInARow, FlowThroughReplicas) {
  Profile profile = chain(3, {.forward_s = 1,
                              .backward_input_s = 1,
                              .backward_weight_s = 1,
                              .update_s = 0.1,
                              .output_bytes = 8,
                              .param_bytes = 4});
  profile.nodes[3].cost.forward_s = 2, profile.nodes[3].cost.backward_input_s = 4;
  const Plan plan = replicated(one_node_each(profile), {1, 2, 1});
  const Schedule schedule = make_flowing_schedule(profile, plan, policy("2bw"), 8);
  ASSERT_GT(schedule.steps, 10);
  const Schedule two = first_steps(schedule, 2);
  std::string first;
  for (const Action& a : two.ranks[1])
    if (a.verb != Verb::recv && a.verb != Verb::send) first += print(a) + " ";
  EXPECT_EQ(first, "1F0 1F2 1B0 1F4 1B2 1F6 1B4 1F8 1B6 1A 1U 1F10 1B8 1F12 1B10 1F14 1B12 1B14 1A 1U ");
  EXPECT_EQ(print(parse_schedule(print(schedule), "text")), print(schedule));
  const Cluster cluster = one_link({.bytes_per_s = 800});
  const double period_s = simulate(schedule, plan, profile, cluster, Steps::overlapped).period_s;
  EXPECT_GE(period_s, 4 * 7 + 0.1);
  EXPECT_LE(period_s, (4 * 7 + 0.1) * 1.12);

  EXPECT_EQ(make_flowing_schedule(profile, plan, policy("2bw"), 9).steps, 1) << "turns would change";
  Schedule wrong = schedule;
  const auto refused = [&](std::initializer_list<std::string> words) {
    expect_error([&] { validate(wrong, profile, plan); }, words);
  };
  std::vector<Action>& actions = wrong.ranks[1];
  actions.erase(std::ranges::find(actions, Verb::reduce, &Action::verb));
  refused({"rank 1", "1A", "every replica"});
  wrong = schedule;
  const auto reduce = std::ranges::find(actions, Verb::reduce, &Action::verb);
  std::swap(*reduce, reduce[1]);
  refused({"rank 1", "1A", "right before the update"});
  wrong = schedule;
  std::rotate(std::ranges::find(actions, Verb::reduce, &Action::verb),
              std::ranges::find(actions, Verb::update, &Action::verb) + 1,
              std::ranges::find(actions, Action{Verb::forward, 1, 10}) + 1);
  refused({"rank 1", "1A", "the last backward of its step"});
}

TEST(StepsInARow, AreForOneStageARankOrOneRank) {
  const Profile profile = chain(4);
  expect_error(
      [&] {
        make_schedule(profile, one_node_each(profile, {0, 1, 0, 1}), policy("2bw"), 4);
      },
      {"one stage a rank"});
  expect_error([&] { make_schedule(profile, one_node_each(profile), policy("2bw"), 3); },
               {"2bw", "3 micro-batches on 4 ranks", "--microbatches 4, the next"});
  expect_error([&] { make_schedule(profile, one_node_each(profile), policy("pipedream"), 8); },
               {"pipedream", "8 micro-batches on 4 ranks", "--microbatches 1, the only"});
  const Schedule one = make_flowing_schedule(profile, one_node_each(profile, {0, 0, 0, 0}), policy("2bw"), 3);
  EXPECT_EQ(one.steps, 1);
  EXPECT_EQ(one.delays, std::vector<int>(4, 1));
}

}  // namespace
}  // namespace antichain::test
