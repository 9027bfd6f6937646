// Every way in which a plan can be wrong gets a sentence of its own.
#include "partition/planners/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

// n0 input; n1 -> n2 -> n3 -> n4; stages {1, 2} and {3, 4}.
class PlanValidate : public ::testing::Test {
 protected:
  void SetUp() override {
    profile.graph_hash = "1234";
    plan = plan_antichain(profile, {.stages = 2});
    ASSERT_EQ(plan.stages[0].nodes, std::vector<int>({1, 2}));
  }
  void refused(const std::string& why) {
    expect_has(error_of([&] { validate(plan, profile); }), why);
  }
  Profile profile = chain(4);
  Plan plan;
};

TEST_F(PlanValidate, AcceptsAPlannedPlan) { EXPECT_NO_THROW(validate(plan, profile)); }

TEST_F(PlanValidate, RefusesAnotherModel) {
  plan.model = "vgg16";
  refused("the plan is for the model vgg16, not for chain");
}

TEST_F(PlanValidate, RefusesAnotherGraph) {
  plan.graph_hash = "5678";
  refused("the plan is for another form of chain (graph 5678, here 1234)");
}

TEST_F(PlanValidate, RefusesAnEmptyPlan) {
  plan.stages.clear();
  refused("the plan is empty");
}

TEST_F(PlanValidate, RefusesAnEmptyStage) {
  plan.stages[1].nodes.clear();
  refused("has no node in stage 1");
}

TEST_F(PlanValidate, RefusesAMissingNode) {
  plan.stages[1].nodes = {4};
  refused("leaves out node 3 (n3)");
}

TEST_F(PlanValidate, RefusesANodeTwice) {
  plan.stages[1].nodes = {2, 3, 4};
  refused("has node 2 (n2) twice: in stage 0 and in stage 1");
}

TEST_F(PlanValidate, RefusesUnknownNodes) {
  plan.stages[1].nodes = {3, 4, 5};
  refused("has a node 5 in stage 1, but the model's nodes are 0 to 4");
  plan.stages[1].nodes = {-1, 3, 4};
  refused("has a node -1 in stage 1");
}

TEST_F(PlanValidate, RefusesAnInputInAStage) {
  plan.stages[0].nodes = {0, 1, 2};
  refused("puts node 0 (n0) into stage 0, but it is an input");
}

TEST_F(PlanValidate, RefusesNodesOutOfOrder) {
  plan.stages[0].nodes = {2, 1};
  refused("lists stage 0's nodes out of order");
}

TEST_F(PlanValidate, RefusesACycleBetweenStages) {
  plan.stages[0].nodes = {1, 3};
  plan.stages[1].nodes = {2, 4};
  refused("has a cycle between stages: node 3 (n3) of stage 0 uses node 2 (n2) of the later stage 1");
}

TEST_F(PlanValidate, RefusesWrongRanks) {
  plan.stages[1].ranks = {};
  refused("has no rank in stage 1");
  plan.stages[1].ranks = {1, 1};
  refused("has rank 1 twice in stage 1");
  plan.stages[1].ranks = {2};
  refused("names rank 2, but no stage has rank 1");
  plan.stages[1].ranks = {-1};
  refused("names rank -1 in stage 1, but ranks count from 0");
}

TEST_F(PlanValidate, RefusesARankOnTwoDevicesAndADeviceWithTwoRanks) {
  plan.stages[0].devices = {3};
  plan.stages[1].devices = {3};
  refused("has ranks 0 and 1 on device 3");
  plan.stages[1].ranks = {0};
  EXPECT_NO_THROW(validate(plan, profile));
  plan.stages[1].devices = {4};
  refused("has rank 0 on device 3, and in stage 1 on device 4");
}

TEST_F(PlanValidate, AcceptsSeveralStagesOfARankWhereOnlyThePlanMatters) {
  plan.stages[1].ranks = {0};
  EXPECT_NO_THROW(validate(plan, profile));
  EXPECT_EQ(plan.ranks(), 1);
  EXPECT_EQ(stages_of_rank(plan, 0), std::vector<int>({0, 1}));
  EXPECT_TRUE(has_several_stages_a_rank(plan));
  EXPECT_FALSE(has_replicas(plan));
  expect_has(error_of([&] { stage_of_rank(plan, 0); }),
             "the plan gives rank 0 the stages 0 and 1, but a rank executes one stage");
  expect_has(error_of([&] { stages_of_rank(plan, 1); }), "has no stage for rank 1");
}

TEST_F(PlanValidate, AcceptsReplicasAndAnyOrderOfRanks) {
  plan.stages[0].ranks = {2};
  plan.stages[1].ranks = {0, 1};
  EXPECT_NO_THROW(validate(plan, profile));
  EXPECT_EQ(plan.ranks(), 3);
}

TEST_F(PlanValidate, StageOfLeavesInputsOut) {
  EXPECT_EQ(plan.stage_of(5), std::vector<int>({-1, 0, 0, 1, 1}));
}

TEST_F(PlanValidate, TheHashIsOfTheCutNotOfTheFigures) {
  Plan other = plan;
  other.planning_s = 7;
  other.bottleneck_s = 3;
  EXPECT_EQ(plan_hash(other), plan_hash(plan));
  EXPECT_EQ(plan_hash(plan).size(), 16u);
  other.stages[0].ranks = {1};
  other.stages[1].ranks = {0};
  EXPECT_NE(plan_hash(other), plan_hash(plan));
  other = plan;
  other.stages[0].nodes = {1};
  other.stages[1].nodes = {2, 3, 4};
  EXPECT_NE(plan_hash(other), plan_hash(plan));
  other = plan;
  other.graph_hash = "other";
  EXPECT_NE(plan_hash(other), plan_hash(plan));
}

}  // namespace
}  // namespace antichain
