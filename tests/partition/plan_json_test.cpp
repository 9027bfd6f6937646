// plan.json: there and back, edited by hand, and everything it refuses.
#include <functional>
#include <nlohmann/json.hpp>

#include "partition/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace testing;
using nlohmann::json;

class PlanJson : public ::testing::Test {
 protected:
  void SetUp() override {
    profile.graph_hash = "12ab";
    profile.model = "chain \"quoted\"";
    for (ProfileNode& node : profile.nodes) node.cost.param_bytes = 7;
    plan = plan_antichain(profile, {.stages = 3, .link = byte_a_nanosecond});
    text = to_json(plan, profile);
  }
  // What reading says once `edit` has changed the file.
  std::string refused(const std::function<void(json&)>& edit) {
    json file = json::parse(text);
    edit(file);
    return error_of([&] { plan_from_json(file.dump(), "plan.json"); });
  }
  Profile profile = chain(6);
  Plan plan;
  std::string text;
};

TEST_F(PlanJson, comes_back_equal) {
  Plan back = plan_from_json(text, "plan.json");
  EXPECT_EQ(plan_hash(back), plan_hash(plan));
  EXPECT_EQ(back.method, "antichain");
  EXPECT_EQ(back.objective, "compute-or-transfer");
  EXPECT_EQ(back.states, 7);
  EXPECT_NEAR(back.bottleneck_s, 6e-6, 0.5e-12);  // six decimals of a millisecond: whole nanoseconds
  EXPECT_TRUE(back.proved_optimal());
  back.planning_s = plan.planning_s;
  EXPECT_EQ(to_json(back, profile), text);
  EXPECT_NO_THROW(validate(back, profile));
}

TEST_F(PlanJson, carries_figures_for_people) {
  json file = json::parse(text);
  EXPECT_EQ(file["bottleneck_ms"], 0.006);
  EXPECT_EQ(file["lower_bound_ms"], 0.006);
  EXPECT_EQ(file["gap"], 0.0);
  EXPECT_EQ(file["proved_optimal"], true);
  const json& stage = file["stages"][1];
  EXPECT_EQ(stage["stage"], 1);
  EXPECT_EQ(stage["ranks"], json({1}));
  EXPECT_EQ(stage["nodes"], json({3, 4}));
  EXPECT_EQ(stage["names"], json({"n3", "n4"}));
  EXPECT_EQ(stage["forward_ms"], 0.002);
  EXPECT_EQ(stage["backward_ms"], 0.004);
  EXPECT_EQ(stage["compute_ms"], 0.006);
  EXPECT_EQ(stage["boundary_bytes"], 100);
  EXPECT_EQ(stage["param_bytes"], 14);
  EXPECT_EQ(file["stages"][2]["boundary_bytes"], 0);
}

TEST_F(PlanJson, a_tensor_that_skips_a_stage_counts_at_every_boundary) {
  Profile skip;
  skip.model = "skip";
  int a = add(skip, {}, 1000, 0, 5);
  int b = add(skip, {a}, 1000, 0, 9);
  add(skip, {a, b}, 1000, 0, 3);
  json file = json::parse(to_json(plan_antichain(skip, {.stages = 3}), skip));
  EXPECT_EQ(file["stages"][0]["boundary_bytes"], 5);
  EXPECT_EQ(file["stages"][1]["boundary_bytes"], 14);
}

TEST_F(PlanJson, a_file_by_hand_needs_only_the_choices) {
  Plan back = plan_from_json(R"({"format": "antichain plan 1", "model": "m", "graph_hash": "h",
      "stages": [{"ranks": [1], "nodes": [2, 1]}, {"ranks": [0], "nodes": [3]}]})",
                             "hand.json");
  EXPECT_EQ(back.stages[0].nodes, std::vector<int>({1, 2}));  // sorted
  EXPECT_EQ(back.stages[0].ranks, std::vector<int>({1}));
  EXPECT_EQ(back.method, "by hand");
  EXPECT_FALSE(back.proved_optimal());
  EXPECT_EQ(back.gap(), 0);
}

TEST_F(PlanJson, refuses_what_is_no_plan) {
  expect_has(error_of([] { plan_from_json("", "plan.json"); }), "plan.json");
  expect_has(error_of([] { plan_from_json("{\"format\": ", "plan.json"); }), "plan.json");
  expect_has(error_of([] { plan_from_json("[]", "plan.json"); }), "plan.json");
  expect_has(error_of([] { plan_from_json("3", "plan.json"); }), "plan.json");
  for (size_t length = 0; length + 2 < text.size(); length += 7)  // a file cut off anywhere
    EXPECT_THROW(plan_from_json(text.substr(0, length), "plan.json"), Error);
}

TEST_F(PlanJson, refuses_another_format) {
  expect_has(refused([](json& f) { f["format"] = "antichain plan 9"; }), "\"antichain plan 1\" is expected");
}

TEST_F(PlanJson, refuses_missing_and_unknown_fields) {
  for (const char* field : {"format", "model", "graph_hash", "stages"})
    expect_has(refused([&](json& f) { f.erase(field); }), field);
  for (const char* field : {"nodes", "ranks"})
    expect_has(refused([&](json& f) { f["stages"][1].erase(field); }), field);
  expect_has(refused([](json& f) { f["colour"] = 1; }), "colour");
  expect_has(refused([](json& f) { f["stages"][1]["colour"] = 1; }), "colour");
}

TEST_F(PlanJson, refuses_wrong_types_and_numbers) {
  expect_has(refused([](json& f) { f["model"] = 3; }), "model");
  expect_has(refused([](json& f) { f["stages"] = 3; }), "stages");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"] = "1, 2"; }), "stages[0].nodes");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"][1] = -2; }), "stages[0].nodes[1]");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"][1] = 1.5; }), "stages[0].nodes[1]");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"][1] = 3000000000; }), "stages[0].nodes[1]");
  expect_has(refused([](json& f) { f["stages"][0]["ranks"][0] = -1; }), "stages[0].ranks[0]");
  expect_has(refused([](json& f) { f["bottleneck_ms"] = -1; }), "bottleneck_ms");
  expect_has(refused([](json& f) { f["states"] = "many"; }), "states");
}

TEST_F(PlanJson, refuses_stages_out_of_sequence) {
  expect_has(refused([](json& f) { f["stages"][1]["stage"] = 4; }),
             "stage 4 stands where stage 1 is expected");
  expect_has(refused([](json& f) { std::swap(f["stages"][0], f["stages"][1]); }),
             "stage 1 stands where stage 0");
}

TEST_F(PlanJson, refuses_duplicates) {
  expect_has(refused([](json& f) { f["stages"][2]["nodes"].push_back(1); }),
             "node 1 stands in the plan twice");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"].push_back(1); }),
             "node 1 stands in the plan twice");
  expect_has(refused([](json& f) { f["stages"][2]["ranks"] = {0}; }), "rank 0 stands in the plan twice");
  std::string twice = text;
  twice.insert(1, "\"model\": \"again\",");
  expect_has(error_of([&] { plan_from_json(twice, "plan.json"); }), "model");
}

TEST_F(PlanJson, is_written_only_when_valid) {
  plan.stages[0].nodes.pop_back();
  EXPECT_THROW(to_json(plan, profile), Error);
}

}  // namespace
}  // namespace antichain
