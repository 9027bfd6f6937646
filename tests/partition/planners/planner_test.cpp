// These tests are about the registry, the uniform planner, and what all planners refuse.
#include "partition/planners/planner.h"

#include <algorithm>

#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

TEST(Planners, AreFoundByName) {
  EXPECT_EQ(method_names(), std::vector<std::string>({"antichain", "cudasize", "hashrate", "handsplit",
                                                      "uniform", "block", "pipedream", "data-parallel"}));
  EXPECT_EQ(planner(method("antichain")), &plan_antichain);
  EXPECT_EQ(planner(Method::uniform), &plan_uniform);
  expect_has(
      error_of([] { method("magic"); }),
      "no planner called \"magic\": choose one of antichain, cudasize, hashrate, handsplit, uniform, block, "
      "pipedream, data-parallel");
}

TEST(Objectives, AreFoundByName) {
  for (const std::string& name : objective_names()) EXPECT_EQ(name_of(objective(name)), name);
  EXPECT_EQ(objective("compute-or-transfer"), Objective::compute_or_transfer);
  expect_has(error_of([] { objective("beauty"); }),
             "no objective called \"beauty\": choose one of compute, compute-or-transfer, makespan");
}

TEST(UniformPlanner, GivesEqualNodeCountsInGraphOrder) {
  Profile profile = chain(10);
  Plan plan = plan_uniform(profile, {.stages = 3});
  validate(plan, profile);
  EXPECT_EQ(plan.stages[0].nodes, std::vector<int>({1, 2, 3}));
  EXPECT_EQ(plan.stages[1].nodes, std::vector<int>({4, 5, 6}));
  EXPECT_EQ(plan.stages[2].nodes, std::vector<int>({7, 8, 9, 10}));
  EXPECT_DOUBLE_EQ(plan.bottleneck_s, 12e-6);
  EXPECT_DOUBLE_EQ(plan.lower_bound_s, 10e-6);
  EXPECT_FALSE(plan.proved_optimal());
  EXPECT_NEAR(plan.gap(), 0.2, 1e-12);  // 12 / 10 − 1, one rounding
}

TEST(UniformPlanner, IsValidForEveryStageCount) {
  for (int seed = 0; seed < 100; ++seed) {
    Profile profile = random_network(seed, 20);
    int nodes = 0;
    for (const ProfileNode& node : profile.nodes) nodes += node.role != Role::input;
    for (int stages = 1; stages <= nodes; ++stages)
      EXPECT_NO_THROW(validate(plan_uniform(profile, {.stages = stages}), profile));
  }
}

class EveryPlanner : public ::testing::TestWithParam<Method> {
 protected:
  Plan plan(const Profile& profile, PlanOptions options) {
    if (GetParam() == Method::handsplit && options.stages > 1 && options.stages < int(profile.nodes.size()))
      for (int s = 1; s < options.stages; ++s) options.cuts.push_back(profile.nodes[s].name);
    return planner(GetParam())(profile, options);
  }
};

TEST_P(EveryPlanner, RefusesMoreStagesThanNodes) {
  EXPECT_NO_THROW(plan(chain(5), {.stages = 5}));
  if (GetParam() == Method::data_parallel) return;  // one stage, whatever the devices
  expect_has(error_of([&] { plan(chain(5), {.stages = 6}); }),
             "6 stages were asked for, but chain has only 5 nodes");
}

TEST_P(EveryPlanner, RefusesNoStagesNoNodesNoStates) {
  expect_has(error_of([&] { plan(chain(5), {.stages = 0}); }), "a plan of 0 stages");
  expect_has(error_of([&] { plan(chain(0), {.stages = 1}); }), "chain has no node to plan, only inputs");
  expect_has(error_of([&] { plan(chain(5), {.stages = 1, .max_states = 0}); }), "at most 0 states");
}

TEST_P(EveryPlanner, RefusesTimesThatCannotBeAddedUp) {
  Profile profile = chain(3);
  profile.nodes[2].cost.forward_s = 1e300;
  expect_has(error_of([&] { plan(profile, {.stages = 1}); }), "node n2 takes");
  if (GetParam() == Method::data_parallel) return;  // no boundary, so no transfer
  expect_has(error_of([&] { plan(chain(3), {.stages = 2, .cluster = one_link({.bytes_per_s = 1e-20})}); }),
             "the link takes longer");
}

TEST_P(EveryPlanner, FillsInWhatThePlanIsFor) {
  Profile profile = chain(4);
  profile.graph_hash = "abc";
  Plan made = plan(profile, {.stages = 2, .objective = Objective::compute});
  EXPECT_EQ(made.model, "chain");
  EXPECT_EQ(made.graph_hash, "abc");
  EXPECT_EQ(made.method, name_of(GetParam()));
  EXPECT_EQ(made.objective, Objective::compute);
  EXPECT_GT(made.states, 0);
  EXPECT_EQ(made.ranks(), 2);
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryPlanner, ::testing::ValuesIn(methods()), [](const auto& info) {
  std::string name(name_of(info.param));
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace antichain
