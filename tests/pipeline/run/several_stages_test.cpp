// Ranks have several stages. Wherever these lie, the same bits come out as on one rank, and checkpoints go on
// under any other plan.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_passes.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain::test {
namespace {

using Ranks = std::vector<int>;

TrainingRun train(const TrainingCase& c, const Ranks& rank_of_stage, unsigned seed,
                  const MakeSchedule& schedule = by_policy(Policy::gpipe)) {
  const int ranks = *std::ranges::max_element(rank_of_stage) + 1;
  return train_on_threads(c, ranks, placed(at_random(seed), rank_of_stage), schedule);
}

class SeveralStages : public ::testing::TestWithParam<const char*> {};

// In the third case a rank has two neighbours and a stage behind other ranks'; in the fourth it has all.
TEST_P(SeveralStages, GiveTheBitsOfOneRank) {
  TrainingCase c{.model = GetParam(), .microbatch = 1, .microbatches = 3, .steps = 2, .rate = 0.01f};
  const TrainingRun one = train_on_threads(c, 1, at_random(0), by_policy(Policy::one_f_one_b));
  ASSERT_NE(one.losses[0], one.losses[1]);
  unsigned seed = 0;
  for (const Ranks& ranks : {Ranks{0, 1, 0, 1}, {0, 1, 1, 0}, {0, 0, 1, 2, 0}, {0, 0, 0}})
    expect_same(train(c, ranks, ++seed), one, fmt::format("{}", fmt::join(ranks, " ")));
}

INSTANTIATE_TEST_SUITE_P(OfEveryEdge, SeveralStages, ::testing::Values("every_edge"));
INSTANTIATE_TEST_SUITE_P(OfSharedWeights, SeveralStages,
                         ::testing::Values("repeated", "siamese", "unrolled", "tied"));
INSTANTIATE_TEST_SUITE_P(Large, SeveralStages, ::testing::Values("resnet20", "densenet121", "inception_v3"));

// Each backward becomes its input half, and all weight halves of the rank come before its updates.
Schedule halves_apart(const Profile& profile, const Plan& plan, int microbatches) {
  Schedule schedule = make_schedule(profile, plan, Policy::gpipe, microbatches);
  for (auto& actions : schedule.ranks) {
    std::vector<Action> weights;
    for (Action& a : actions) {
      if (a.verb != Verb::backward) continue;
      weights.push_back({.verb = Verb::backward_weight, .stage = a.stage, .microbatch = a.microbatch});
      a.verb = Verb::backward_input;
    }
    const auto first_update = std::ranges::find(actions, Verb::update, &Action::verb);
    actions.insert(first_update, weights.begin(), weights.end());
  }
  return schedule;
}

TEST(SeveralStages, GiveTheBitsOfOneRankWithHalvesApart) {
  const TrainingCase c{.steps = 3, .epoch = true};
  const TrainingRun one = train_on_threads(c, 1, at_random(0), by_policy(Policy::one_f_one_b));
  for (const Ranks& ranks : {Ranks{0}, {0, 1, 2}, {0, 1, 0, 1}, {0, 1, 1, 0}})
    expect_same(train(c, ranks, 3, halves_apart), one, fmt::format("{}", fmt::join(ranks, " ")));
}

// A step with numbers that are not finite leaves no trace, although a rank has several updates.
TEST(SeveralStages, SkipABadStepWhole) {
  TrainingCase c{.steps = 4, .on_nan = OnNan::skip, .rate = 1e4f};
  const TrainingRun one = train_on_threads(c, 1, at_random(0), by_policy(Policy::one_f_one_b));
  const TrainingRun two = train(c, {0, 1, 1, 0}, 1);
  EXPECT_EQ(two.state, one.state);
}

TEST(SeveralStages, GoOnFromCheckpointsOfOtherPlans) {
  const TrainingCase whole{.steps = 4, .epochs = 1};
  const TrainingRun one = train_on_threads(whole, 1, at_random(0), by_policy(Policy::one_f_one_b));
  const TemporaryFolder folder;
  TrainingCase first = whole, rest = whole;
  first.checkpoint = rest.checkpoint = folder.str();
  first.until = 1;
  train(first, {0, 1, 0, 1}, 1);
  first.until = 3;
  EXPECT_EQ(train(first, {0, 1, 2}, 2).first_step, 1);
  const TrainingRun last = train(rest, {1, 0, 0, 1, 1}, 3);
  EXPECT_EQ(last.first_step, 3);
  EXPECT_EQ(last.state, one.state);
}

TEST(SeveralStages, ReplicasHaveNoOtherStage) {
  Plan plan = one_node_each(chain(3));
  plan.stages[0].ranks = {0, 1};
  plan.stages[1].ranks = {2};
  plan.stages[2].ranks = {1};
  expect_error([&] { check_replicas_have_one_stage(plan); },
               {"stage 0 of the plan has 2 replicas, but its rank 1 has 2 stages", "every stage one rank"});
  plan.stages[2].ranks = {2};
  EXPECT_NO_THROW(check_replicas_have_one_stage(plan));
}

TEST(SeveralStages, UpdateAfterAllBackwardsOfTheRank) {
  const Profile profile = chain(2);
  Plan plan = one_node_each(profile);
  plan.stages[1].ranks = {0};
  Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 2);
  std::vector<Action>& actions = schedule.ranks[0];
  const auto last = std::ranges::find(actions, Action{Verb::update, 1});
  const Action update = *last;
  actions.erase(last);
  actions.insert(std::ranges::find(actions, Action{Verb::backward, 0, 1}), update);
  expect_error([&] { validate(schedule, profile, plan); },
               {"1U comes before 0B1", "after all its backwards"});
}

}  // namespace
}  // namespace antichain::test
