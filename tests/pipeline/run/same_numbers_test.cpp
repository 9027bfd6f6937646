// Promise 1 says that with a synchronous schedule the same bits come out whatever the cut. Each network is
// trained for a few steps on one stage; then on more stages, with plans of the planner and with cuts at
// random places inside blocks. Every loss and every bit of the state afterwards must be the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "partition/planners/planner.h"
#include "pipeline/schedule/policy.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

using namespace test;

class SameNumbers : public ::testing::TestWithParam<const char*> {};

TEST_P(SameNumbers, WhateverTheCut) {
  TrainingCase c{.model = GetParam(), .microbatch = 2, .microbatches = 4, .steps = 3};
  if (c.model == "squeezenet1_0") c.rate = 0.01f;  // at 0.05 its test loss is infinite after three steps
  const auto one_f_one_b = by_policy(Policy::one_f_one_b), gpipe = by_policy(Policy::gpipe);
  const TrainingRun one = train_on_threads(c, 1, by_antichains, one_f_one_b);
  ASSERT_EQ(one.losses.size(), 3u);
  ASSERT_NE(one.losses[0], one.losses[1]);
  expect_same(one, train_on_threads(c, 1, by_antichains, one_f_one_b), "twice");
  for (int stages = 2; stages <= 4; ++stages) {
    expect_same(one, train_on_threads(c, stages, by_antichains, one_f_one_b),
                "1f1b, " + std::to_string(stages));
    expect_same(one, train_on_threads(c, stages, by_antichains, gpipe), "gpipe, " + std::to_string(stages));
  }
  for (unsigned seed = 0; seed < 3; ++seed)
    expect_same(one, train_on_threads(c, 4, at_random(seed), one_f_one_b),
                "random cuts " + std::to_string(seed));
}

INSTANTIATE_TEST_SUITE_P(OfEveryEdge, SameNumbers, ::testing::Values("every_edge"));
INSTANTIATE_TEST_SUITE_P(Large, SameNumbers, ::testing::Values("resnet20", "squeezenet1_0", "mobilenet_v2"));

class SameNumbersOnTwoStages : public ::testing::TestWithParam<const char*> {};

TEST_P(SameNumbersOnTwoStages, AsOnOne) {
  const TrainingCase c{.model = GetParam(), .microbatch = 2, .microbatches = 2, .steps = 2};
  const auto one_f_one_b = by_policy(Policy::one_f_one_b);
  const TrainingRun one = train_on_threads(c, 1, by_antichains, one_f_one_b);
  ASSERT_EQ(one.losses.size(), 2u);
  ASSERT_NE(one.losses[0], one.losses[1]);
  expect_same(one, train_on_threads(c, 2, by_antichains, one_f_one_b), GetParam());
}

// ResNet-101 and ResNeXt-101 have more blocks of the same kind as ResNet-50 and ResNeXt-50.
INSTANTIATE_TEST_SUITE_P(Large, SameNumbersOnTwoStages,
                         ::testing::Values("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0",
                                           "inception_v3", "mobilenet_v3_large", "resnet18", "resnet32",
                                           "resnet50", "resnet56", "resnext50", "vgg16"));

int stage_of(const Plan& plan, const Profile& profile, std::string_view node) {
  const auto at = std::ranges::find_if(profile.nodes, [&](const ProfileNode& n) { return n.called(node); });
  return plan.stage_of(int(profile.nodes.size()))[size_t(at - profile.nodes.begin())];
}

// Two losses on two stages: both need the labels, and their gradients meet where the head leaves the trunk.
Plan losses_apart(const Profile& profile, int stages) {
  for (unsigned seed = 0;; ++seed) {
    Plan plan = at_random(seed)(profile, stages);
    if (stage_of(plan, profile, "aux.loss") != stage_of(plan, profile, "loss")) return plan;
  }
}

TEST(SameNumbers, WithTheAuxiliaryLossOnAnotherStage) {
  TrainingCase c{.microbatch = 2, .microbatches = 2, .steps = 2, .rate = 0.005f, .aux = 0.4};
  const auto one_f_one_b = by_policy(Policy::one_f_one_b);
  const TrainingRun one = train_on_threads(c, 1, by_antichains, one_f_one_b);
  expect_same(one, train_on_threads(c, 2, by_antichains, one_f_one_b), "2 stages");
  expect_same(one, train_on_threads(c, 3, losses_apart, one_f_one_b), "losses apart");
  c.aux = 0.2;
  EXPECT_LT(train_on_threads(c, 1, by_antichains, one_f_one_b).losses[0], one.losses[0])
      << "the auxiliary loss counts";
}

// Backward's halves apart: the first half of each B becomes I, the second comes as late as the order allows.
Schedule halves_apart(const Profile& profile, const Plan& plan, int microbatches) {
  Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, microbatches);
  for (auto& actions : schedule.ranks) {
    std::vector<Action> halves;
    for (Action& a : actions) {
      if (a.verb == Verb::backward) {
        halves.push_back({.verb = Verb::backward_weight, .stage = a.stage, .microbatch = a.microbatch});
        a.verb = Verb::backward_input;
      }
    }
    actions.insert(actions.end() - 1, halves.begin(), halves.end());  // before the update
  }
  return schedule;
}

TEST(SameNumbers, WithBackwardsHalvesApart) {
  const TrainingCase c;
  const TrainingRun one = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  for (int stages = 1; stages <= 3; ++stages)
    expect_same(one, train_on_threads(c, stages, by_antichains, halves_apart),
                std::to_string(stages) + " stages");
}

TEST(SameNumbers, InEvaluationOverAnUnevenSet) {
  const TrainingCase c{.epoch = true};
  const TrainingRun one = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  EXPECT_GE(one.test_accuracy, 0);
  expect_same(one, train_on_threads(c, 3, by_antichains, by_policy(Policy::gpipe)), "3 stages");
}

}  // namespace
}  // namespace antichain
