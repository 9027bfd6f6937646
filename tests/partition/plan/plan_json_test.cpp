// A plan.json is written and read back, edited by hand, and refused in every way that it can be wrong.
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "partition/planners/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;
using nlohmann::json;

class PlanJson : public ::testing::Test {
 protected:
  void SetUp() override {
    profile.graph_hash = "12ab";
    profile.model = "chain \"quoted\"";
    for (ProfileNode& node : profile.nodes) node.cost.param_bytes = 7;
    plan = plan_antichain(profile, {.stages = 3, .cluster = one_link(byte_a_nanosecond)});
    plan.bound_for = "feed";
    text = to_json(plan, profile);
  }
  // Returns what reading says once `edit` has changed the file.
  std::string refused(const std::function<void(json&)>& edit) {
    json file = json::parse(text);
    edit(file);
    return error_of([&] { plan_from_json(file.dump(), "plan.json"); });
  }
  Profile profile = chain(6);
  Plan plan;
  std::string text;
};

TEST_F(PlanJson, ComesBackEqual) {
  Plan back = plan_from_json(text, "plan.json");
  EXPECT_EQ(plan_hash(back), plan_hash(plan));
  EXPECT_EQ(back.method, "antichain");
  EXPECT_EQ(back.objective, Objective::compute_or_transfer);
  EXPECT_EQ(back.states, 7);
  EXPECT_NEAR(back.bottleneck_s, 6e-6, 0.5e-12);  // six decimals of a millisecond: whole nanoseconds
  EXPECT_TRUE(back.proved_optimal());
  back.planning_s = plan.planning_s;
  EXPECT_EQ(to_json(back, profile), text);
  EXPECT_NO_THROW(validate(back, profile));
}

TEST_F(PlanJson, CarriesFiguresForPeople) {
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
  EXPECT_FALSE(stage.contains("devices"));  // rank 1 has device 1
  plan.stages[1].memory_bytes = int64_t(1) << 40;
  plan.step_s = 1.5e-3;
  const json more = json::parse(to_json(plan, profile));
  EXPECT_EQ(more["stages"][1]["memory_bytes"], int64_t(1) << 40);
  EXPECT_EQ(more["step_ms"], 1.5);
  EXPECT_EQ(file["stages"][2]["boundary_bytes"], 0);
}

TEST_F(PlanJson, HasTheNamesThatScriptsUse) {
  const json file = json::parse(text);
  for (const char* name : {"model", "method", "objective", "stages", "bottleneck_ms", "step_ms",
                           "lower_bound_ms", "gap", "proved_optimal", "states", "planning_ms"})
    EXPECT_TRUE(file.contains(name)) << name;
  for (const char* name : {"stage", "ranks", "nodes", "forward_ms", "backward_ms", "compute_ms",
                           "boundary_bytes", "memory_bytes"})
    EXPECT_TRUE(file["stages"][0].contains(name)) << name;
}

TEST_F(PlanJson, FiguresComeBack) {
  plan.objective = Objective::makespan;
  plan.step_s = 7.25e-3;
  plan.stages[2].memory_bytes = 12345;
  const Plan back = plan_from_json(to_json(plan, profile), "plan.json");
  EXPECT_NEAR(back.step_s, 7.25e-3, 0.5e-12);  // whole nanoseconds
  EXPECT_EQ(back.stages[2].memory_bytes, 12345);
  EXPECT_EQ(to_json(back, profile), to_json(plan, profile));
}

TEST_F(PlanJson, DevicesStandBesideTheirRanks) {
  plan.stages[0].ranks = {2, 0};
  plan.stages[0].devices = {5, 7};
  plan.stages[1].ranks = {1};
  plan.stages[1].devices = {1};
  plan.stages[2].ranks = {3};
  plan.stages[2].devices = {0};
  const json file = json::parse(to_json(plan, profile));
  EXPECT_EQ(file["stages"][0]["devices"], json({5, 7}));
  EXPECT_FALSE(file["stages"][1].contains("devices"));
  EXPECT_EQ(file["stages"][2]["devices"], json::array({0}));
  const Plan back = plan_from_json(file.dump(), "plan.json");
  EXPECT_EQ(back.stages[0].ranks, std::vector<int>({0, 2}));
  EXPECT_EQ(back.stages[0].devices, std::vector<int>({7, 5}));
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(back.device_of(rank), plan.device_of(rank)) << rank;
  expect_has(refused([](json& f) { f["stages"][0]["devices"] = {1, 2}; }), "2 devices for 1 ranks");
  expect_has(refused([](json& f) { f["stages"][0]["devices"] = {-1}; }), "stages[0].devices[0]");
  expect_has(refused([](json& f) { f["stages"][0]["devices"] = f["stages"][1]["devices"] = {4}; }),
             "device 4 stands in the plan twice");
}

// image (an input) -> node2 -> node10 -> node11
class PlanOfNames : public PlanJson {
 protected:
  void SetUp() override {
    profile = chain(3);
    profile.ids_are_names = true;
    profile.nodes[0].name = "image";
    for (int n : {1, 2, 3}) profile.nodes[n].name = std::array{"node2", "node10", "node11"}[n - 1];
    plan = plan_antichain(profile, {.stages = 2});
    text = to_json(plan, profile);
  }
  std::string refused_here(const std::string& from, const std::string& to) {
    std::string edited = text;
    edited.replace(edited.find(from), from.size(), to);
    return error_of([&] { plan_from_json(edited, "plan.json", profile); });
  }
};

TEST_F(PlanOfNames, ListsIdsAsInTheFileAndInputsInTheFirstStage) {
  const json file = json::parse(text);
  EXPECT_EQ(file["stages"][0]["nodes"][0], "image");
  EXPECT_EQ(file["stages"][0]["nodes"][1], "node2");
  EXPECT_EQ(file["stages"][1]["nodes"].back(), "node11");
  const Plan back = plan_from_json(text, "plan.json", profile);
  EXPECT_EQ(plan_hash(back), plan_hash(plan));
  EXPECT_NO_THROW(validate(back, profile));
  EXPECT_EQ(to_json(back, profile), text);
}

TEST_F(PlanOfNames, IndicesAreUnderstoodToo) {
  const Plan back = plan_from_json(R"({"format": "antichain plan 1", "model": "chain", "graph_hash": "",
      "stages": [{"ranks": [0], "nodes": [0, "node2"]}, {"ranks": [1], "nodes": ["node11", 2]}]})",
                                   "hand.json", profile);
  EXPECT_EQ(back.stages[0].nodes, std::vector<int>({1}));
  EXPECT_EQ(back.stages[1].nodes, std::vector<int>({2, 3}));
}

TEST_F(PlanOfNames, RefusesNamesThatMeanNothingHere) {
  expect_has(refused_here("\"node2\"", "\"node7\""), "the model chain has no node \"node7\"");
  expect_has(refused_here("\"node2\"", "\"image\""), "node 0 stands in the plan twice");
  expect_has(refused_here("\"node2\"", "true"), "stages[0].nodes[1]");
  expect_has(error_of([&] { plan_from_json(text, "plan.json"); }),
             "stages[0].nodes[0]: \"image\" is a name; numbers are expected here");
}

TEST_F(PlanOfNames, AnInputInALaterStageIsNoPartOfIt) {
  Plan back = plan_from_json(R"({"format": "antichain plan 1", "model": "chain", "graph_hash": "",
      "stages": [{"ranks": [0], "nodes": ["node2"]},
                 {"ranks": [1], "nodes": ["image", "node10", "node11"]}]})",
                             "hand.json", profile);
  expect_has(error_of([&] { validate(back, profile); }), "it is an input");
}

TEST_F(PlanJson, NamesAreResolvedForOurOwnNetworksToo) {
  json file = json::parse(text);
  for (json& stage : file["stages"]) stage["nodes"] = stage["names"];
  EXPECT_EQ(plan_hash(plan_from_json(file.dump(), "plan.json", profile)), plan_hash(plan));
  file["stages"][0]["nodes"].push_back("n0");  // the input, which here belongs to no stage
  const Plan with_input = plan_from_json(file.dump(), "plan.json", profile);
  expect_has(error_of([&] { validate(with_input, profile); }), "it is an input");
}

TEST_F(PlanJson, ATensorThatSkipsAStageCountsAtEveryBoundary) {
  Profile skip;
  skip.model = "skip";
  int a = add(skip, {}, 1000, 0, 5);
  int b = add(skip, {a}, 1000, 0, 9);
  add(skip, {a, b}, 1000, 0, 3);
  json file = json::parse(to_json(plan_antichain(skip, {.stages = 3}), skip));
  EXPECT_EQ(file["stages"][0]["boundary_bytes"], 5);
  EXPECT_EQ(file["stages"][1]["boundary_bytes"], 14);
}

TEST_F(PlanJson, AFileByHandNeedsOnlyTheChoices) {
  Plan back = plan_from_json(R"({"format": "antichain plan 1", "model": "m", "graph_hash": "h",
      "stages": [{"ranks": [1], "nodes": [2, 1]}, {"ranks": [0], "nodes": [3]}]})",
                             "hand.json");
  EXPECT_EQ(back.stages[0].nodes, std::vector<int>({1, 2}));  // sorted
  EXPECT_EQ(back.stages[0].ranks, std::vector<int>({1}));
  EXPECT_EQ(back.method, "by hand");
  EXPECT_FALSE(back.proved_optimal());
  EXPECT_EQ(back.gap(), 0);
}

TEST_F(PlanJson, OtherStagesThanAMethodMadeAreByHand) {
  const std::string method = plan_from_json(text, "plan.json").method;
  EXPECT_NE(method, "by hand");
  json edited = json::parse(text);
  edited["stages"][0]["nodes"].push_back(99);
  EXPECT_EQ(plan_from_json(edited.dump(), "plan.json").method, "by hand");
  json other = json::parse(text);
  other["step_ms"] = 7;
  EXPECT_EQ(plan_from_json(other.dump(), "plan.json").method, method) << "figures are no choice";
  other.erase("stages_hash");
  EXPECT_EQ(plan_from_json(other.dump(), "plan.json").method, "by hand") << "nobody knows";
}

TEST_F(PlanJson, RefusesWhatIsNoPlan) {
  expect_has(error_of([] { plan_from_json("", "plan.json"); }), "plan.json");
  expect_has(error_of([] { plan_from_json("{\"format\": ", "plan.json"); }), "plan.json");
  expect_has(error_of([] { plan_from_json("[]", "plan.json"); }), "plan.json");
  expect_has(error_of([] { plan_from_json("3", "plan.json"); }), "plan.json");
  for (size_t length = 0; length + 2 < text.size(); length += 7)  // a file cut off anywhere
    EXPECT_THROW(plan_from_json(text.substr(0, length), "plan.json"), Error);
}

TEST_F(PlanJson, RefusesAnotherFormat) {
  expect_has(refused([](json& f) { f["format"] = "antichain plan 9"; }), "\"antichain plan 1\" is expected");
}

TEST_F(PlanJson, RefusesMissingAndUnknownFields) {
  for (const char* field : {"format", "model", "graph_hash", "stages"})
    expect_has(refused([&](json& f) { f.erase(field); }), field);
  for (const char* field : {"nodes", "ranks"})
    expect_has(refused([&](json& f) { f["stages"][1].erase(field); }), field);
  expect_has(refused([](json& f) { f["colour"] = 1; }), "colour");
  expect_has(refused([](json& f) { f["stages"][1]["colour"] = 1; }), "colour");
}

TEST_F(PlanJson, RefusesAnObjectiveThatIsNone) {
  expect_has(refused([](json& f) { f["objective"] = "beauty"; }),
             "\"beauty\" is no objective; choose compute");
}

TEST_F(PlanJson, RefusesWrongTypesAndNumbers) {
  expect_has(refused([](json& f) { f["model"] = 3; }), "model");
  expect_has(refused([](json& f) { f["stages"] = 3; }), "stages");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"] = "1, 2"; }), "stages[0].nodes");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"][1] = -2; }), "stages[0].nodes[1]");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"][1] = 1.5; }), "stages[0].nodes[1]");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"][1] = 3000000000; }), "stages[0].nodes[1]");
  for (const int rank : {-1, 1 << 13})
    expect_has(refused([&](json& f) { f["stages"][0]["ranks"][0] = rank; }), "stages[0].ranks[0]");
  for (const char* time : {"bottleneck_ms", "step_ms", "lower_bound_ms", "planning_ms"}) {
    expect_has(refused([&](json& f) { f[time] = -1; }), time);
    expect_has(refused([&](json& f) { f[time] = 1e300; }), "longer than 13 days");
  }
  expect_has(refused([](json& f) { f["stages"][0]["memory_bytes"] = -1; }), "stages[0].memory_bytes");
  expect_has(refused([](json& f) { f["states"] = "many"; }), "states");
}

TEST_F(PlanJson, RefusesStagesOutOfSequence) {
  expect_has(refused([](json& f) { f["stages"][1]["stage"] = 4; }),
             "stage 4 stands where stage 1 is expected");
  expect_has(refused([](json& f) { std::swap(f["stages"][0], f["stages"][1]); }),
             "stage 1 stands where stage 0");
}

TEST_F(PlanJson, RefusesDuplicates) {
  expect_has(refused([](json& f) { f["stages"][2]["nodes"].push_back(1); }),
             "node 1 stands in the plan twice");
  expect_has(refused([](json& f) { f["stages"][0]["nodes"].push_back(1); }),
             "node 1 stands in the plan twice");
  expect_has(refused([](json& f) { f["stages"][2]["ranks"] = {0, 0}; }), "rank 0 stands in the stage twice");
  std::string twice = text;
  twice.insert(1, "\"model\": \"again\",");
  expect_has(error_of([&] { plan_from_json(twice, "plan.json"); }), "model");
}

TEST_F(PlanJson, IsWrittenOnlyWhenValid) {
  plan.stages[0].nodes.pop_back();
  EXPECT_THROW(to_json(plan, profile), Error);
}

}  // namespace
}  // namespace antichain
