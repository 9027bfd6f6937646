// A profile.json is written and read back, and refused in every way that it can be wrong.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "partition/planners/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;
using nlohmann::json;

Profile sample_profile() {
  Profile profile;
  profile.model = "tiny \\ \"net\"\n";
  profile.graph_hash = "0123456789abcdef";
  profile.device = "cpu avx512, ü";
  profile.microbatch = 32;
  profile.threads = 2;
  profile.ranks_at_once = 4;
  profile.link = {.bytes_per_s = 1.0 / 3 * 1e10, .latency_s = 4.321e-6};
  profile.overhead_s = 12.345e-6;
  int image = add_input(profile);
  int a = add(profile, {image}, 1234567, 7654321, int64_t(1) << 40);
  profile.nodes[a].cost.backward_weight_s = 0.000000001;
  profile.nodes[a].cost.update_s = 0.25;
  profile.nodes[a].cost.param_bytes = 3;
  profile.nodes[a].cost.prepared_bytes = 5;
  profile.nodes[a].cost.stash_bytes = 4;
  profile.nodes[a].cost.scratch_bytes = 6;
  profile.nodes[a].cost.keeps_output = true;
  profile.nodes[a].cost.flops = 0.1;
  profile.nodes[a].in_place = true;
  profile.nodes[a].barred = true;
  profile.nodes[a].module = "layers.0";
  profile.called_once = {"layers.0", "a \"b\""};
  profile.nodes[add(profile, {a, a, image})].role = Role::loss;
  profile.together = {{1, 2}};
  profile.sent = {{{1, 2}, 77}};
  return profile;
}

std::string profile_refusal(const std::function<void(json&)>& edit) {
  json file = json::parse(to_json(sample_profile()));
  edit(file);
  return error_of([&] { profile_from_json(file.dump(), "profile.json"); });
}

// Not said where it is float32, so that files from before say the same.
TEST(ProfileJson, SaysAPrecisionOtherThanFloat32) {
  Profile profile = sample_profile();
  EXPECT_EQ(to_json(profile).find("precision"), std::string::npos);
  profile.precision = Precision::bf16;
  EXPECT_EQ(profile_from_json(to_json(profile), "p.json").precision, Precision::bf16);
  EXPECT_NE(profile_refusal([](json& file) { file["precision"] = "bf61"; }).find("float32, bf16"),
            std::string::npos);
}

TEST(ProfileJson, SaysHowTensorsWentOverItsLink) {
  Profile profile = sample_profile();
  EXPECT_EQ(to_json(profile).find("link_way"), std::string::npos);
  profile.link_way = "tensors travel through host memory";
  EXPECT_EQ(profile_from_json(to_json(profile), "p.json").link_way, profile.link_way);
}

// It is not said where it is one more copy of the weights, as files from before mean it.
TEST(ProfileJson, SaysWhatAnOptimiserKeepsOtherThanOneCopyOfTheWeights) {
  Profile profile = sample_profile();
  profile.nodes[1].cost.optimiser_bytes = profile.nodes[1].cost.param_bytes;
  const std::string usual = to_json(profile);
  EXPECT_EQ(usual, to_json(sample_profile()));
  EXPECT_EQ(usual.find("optimiser_bytes"), std::string::npos);
  EXPECT_EQ(profile_from_json(usual, "p.json").nodes[1].cost.slot_bytes(), 3);
  for (const int64_t bytes : {0, 6}) {
    profile.nodes[1].cost.optimiser_bytes = bytes;
    EXPECT_EQ(profile_from_json(to_json(profile), "p.json").nodes[1].cost.slot_bytes(), bytes);
  }
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["optimiser_bytes"] = -1; }), "optimiser_bytes");
}

// What parting a backward costs is said where it was measured; files from before do not have it.
TEST(ProfileJson, SaysWhatPartingABackwardCosts) {
  Profile profile = sample_profile();
  EXPECT_EQ(to_json(profile).find("backward_parted_us"), std::string::npos);
  profile.nodes[1].cost.backward_parted_s = 12e-6;
  const NodeCost cost = profile_from_json(to_json(profile), "p.json").nodes[1].cost;
  EXPECT_DOUBLE_EQ(cost.backward_parted_s, 12e-6);
  EXPECT_DOUBLE_EQ(cost.late_weight_s(), cost.backward_weight_s + 12e-6);
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["backward_parted_us"] = -1; }),
             "backward_parted_us");
}

TEST(ProfileJson, ComesBackEqualInEveryField) {
  Profile before = sample_profile(), after = profile_from_json(to_json(before), "profile.json");
  EXPECT_EQ(after.model, before.model);
  EXPECT_EQ(after.graph_hash, before.graph_hash);
  EXPECT_EQ(after.device, before.device);
  EXPECT_EQ(after.microbatch, 32);
  EXPECT_EQ(after.threads, 2);
  EXPECT_EQ(after.ranks_at_once, 4);
  EXPECT_EQ(after.link.bytes_per_s, before.link.bytes_per_s);  // all digits
  EXPECT_EQ(std::llround(after.link.latency_s * 1e9), 4321);
  EXPECT_EQ(std::llround(after.overhead_s * 1e9), 12345);
  EXPECT_EQ(after.called_once, before.called_once);
  EXPECT_EQ(after.together, before.together);
  ASSERT_EQ(after.sent->size(), 1u);
  EXPECT_EQ(after.sent->front().nodes, before.sent->front().nodes);
  EXPECT_EQ(after.sent->front().bytes, 77);
  ASSERT_EQ(after.nodes.size(), 3u);
  for (size_t n = 0; n < 3; ++n) {
    const ProfileNode &a = after.nodes[n], &b = before.nodes[n];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.op, b.op);
    EXPECT_EQ(a.role, b.role);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.needs_gradient, b.needs_gradient);
    EXPECT_EQ(a.in_place, b.in_place);
    EXPECT_EQ(a.barred, b.barred);
    EXPECT_EQ(a.module, b.module);
    EXPECT_EQ(a.cost.output_bytes, b.cost.output_bytes);
    EXPECT_EQ(a.cost.param_bytes, b.cost.param_bytes);
    EXPECT_EQ(a.cost.prepared_bytes, b.cost.prepared_bytes);
    EXPECT_EQ(a.cost.stash_bytes, b.cost.stash_bytes);
    EXPECT_EQ(a.cost.scratch_bytes, b.cost.scratch_bytes);
    EXPECT_EQ(a.cost.keeps_output, b.cost.keeps_output);
    EXPECT_EQ(a.cost.flops, b.cost.flops);
    auto ns = [](double s) { return std::llround(s * 1e9); };
    EXPECT_EQ(ns(a.cost.forward_s), ns(b.cost.forward_s));
    EXPECT_EQ(ns(a.cost.backward_input_s), ns(b.cost.backward_input_s));
    EXPECT_EQ(ns(a.cost.backward_weight_s), ns(b.cost.backward_weight_s));
    EXPECT_EQ(ns(a.cost.update_s), ns(b.cost.update_s));
  }
}

TEST(ProfileJson, IsTheSameTextAfterARoundTrip) {
  for (int seed = 0; seed < 50; ++seed) {
    Profile profile = random_network(seed, 20);
    for (ProfileNode& node : profile.nodes) node.cost.forward_s = node.cost.forward_s * 1e4 / 3;
    std::string text = to_json(profile);
    EXPECT_EQ(to_json(profile_from_json(text, "p")), text);
  }
}

TEST(ProfileJson, PlansAlikeBeforeAndAfter) {
  for (int seed = 0; seed < 50; ++seed) {
    Profile profile = random_network(seed, 12);
    for (ProfileNode& node : profile.nodes) node.cost.forward_s = node.cost.forward_s * 1e4 / 3;
    Profile read = profile_from_json(to_json(profile), "p");
    Plan a = plan_antichain(profile, {.stages = 1}), b = plan_antichain(read, {.stages = 1});
    EXPECT_EQ(a.bottleneck_s, b.bottleneck_s) << "seed " << seed;
    EXPECT_EQ(plan_hash(a), plan_hash(b));
  }
}

TEST(ProfileJson, SaysWhenIdsAreNames) {
  Profile profile = sample_profile();
  EXPECT_EQ(to_json(profile).find("ids_are_names"), std::string::npos);
  profile.ids_are_names = true;
  const std::string text = to_json(profile);
  expect_has(text, "\n  \"ids_are_names\": true,\n  \"nodes\"");
  EXPECT_TRUE(profile_from_json(text, "p").ids_are_names);
  EXPECT_EQ(to_json(profile_from_json(text, "p")), text);
  expect_has(profile_refusal([](json& f) { f["ids_are_names"] = "yes"; }), "ids_are_names");
}

// Each of these once came back changed, or not at all.
TEST(ProfileJson, ExtremeNumbersComeBack) {
  json file = json::parse(to_json(sample_profile()));
  file["nodes"][1]["flops"] = -0.0;
  file["nodes"][2]["flops"] = std::numeric_limits<double>::max();
  file["nodes"][1]["forward_us"] = 1125899906842.624;  // 2^50 ns
  file["nodes"][1]["update_us"] = -0.0;
  file["link"]["bytes_per_s"] = std::numeric_limits<double>::denorm_min();
  const std::string text = to_json(profile_from_json(file.dump(), "p"));
  EXPECT_EQ(to_json(profile_from_json(text, "p")), text);
  expect_has(text, "\"forward_us\": 1125899906842.624, ");
  expect_has(text, "\"flops\": 0}");
}

TEST(ProfileJson, RefusesTimesAndSizesThatNoPlanCanAddUp) {
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["forward_us"] = 1.2e12; }), "longer than 13 days");
  expect_has(profile_refusal([](json& f) { f["link"]["latency_us"] = 1e300; }), "longer than 13 days");
  const int64_t most = int64_t(1) << 50;
  expect_has(
      profile_refusal([&](json& f) { f["nodes"][1]["param_bytes"] = f["nodes"][2]["param_bytes"] = most; }),
      "nodes[2]: with this node, sizes add up to more than 1125899906842624 bytes");
  expect_has(
      profile_refusal([&](json& f) { f["nodes"][1]["stash_bytes"] = f["nodes"][0]["output_bytes"] = most; }),
      "nodes[1]: with this node");
}

TEST(ProfileJson, WhatIsNoUtf8IsWrittenAsSuch) {
  Profile profile = sample_profile();
  profile.model = "caf\xe9";  // Latin-1, from a file name
  EXPECT_EQ(profile_from_json(to_json(profile), "p").model, "caf\xef\xbf\xbd");
}

TEST(ProfileJson, HasOneLineANode) {
  std::string text = to_json(sample_profile());
  expect_has(text,
             "\n    {\"id\": 1, \"name\": \"n1\", \"module\": \"layers.0\", \"op\": \"work\", \"role\": "
             "\"compute\", \"inputs\": [0], ");
  expect_has(text,
             "\"forward_us\": 1234.567, \"backward_input_us\": 7654.321, \"backward_weight_us\": 0.001, ");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
}

TEST(ProfileJson, RefusesAFileCutOffAnywhere) {
  std::string text = to_json(sample_profile());
  for (size_t length = 0; length + 2 < text.size(); length += 11)
    EXPECT_THROW(profile_from_json(text.substr(0, length), "profile.json"), Error);
}

TEST(ProfileJson, RefusesMissingFields) {
  json whole = json::parse(to_json(sample_profile()));
  for (const char* unsaid : {"prepared_bytes", "scratch_bytes", "in_place", "barred", "module"})
    whole["nodes"][1].erase(unsaid);  // none
  for (const char* unsaid : {"called_once", "together", "sent"}) whole.erase(unsaid);
  for (const auto& [field, value] : whole.items())
    expect_has(profile_refusal([&, name = field](json& f) { f.erase(name); }), field);
  for (const auto& [field, value] : whole["nodes"][1].items())
    expect_has(profile_refusal([&, name = field](json& f) { f["nodes"][1].erase(name); }), field);
  for (const auto& [field, value] : whole["link"].items())
    expect_has(profile_refusal([&, name = field](json& f) { f["link"].erase(name); }), field);
}

TEST(ProfileJson, RefusesSetsThatNoStageCanHave) {
  expect_has(profile_refusal([](json& f) { f["together"] = json::parse("[[1]]"); }),
             "together[0]: it takes two nodes");
  expect_has(profile_refusal([](json& f) { f["together"] = json::parse("[[0, 1]]"); }), "node 0 is an input");
  expect_has(profile_refusal([](json& f) { f["together"] = json::parse("[[2, 1]]"); }), "do not ascend");
  expect_has(profile_refusal([](json& f) { f["together"] = json::parse("[[1, 3]]"); }), "together[0][1]");
  expect_has(profile_refusal([](json& f) { f["sent"][0]["bytes"] = -1; }), "sent[0].bytes");
}

TEST(ProfileJson, RefusesUnknownFields) {
  expect_has(profile_refusal([](json& f) { f["colour"] = 1; }), "colour");
  expect_has(profile_refusal([](json& f) { f["link"]["colour"] = 1; }), "colour");
  expect_has(profile_refusal([](json& f) { f["nodes"][2]["colour"] = 1; }), "colour");
}

TEST(ProfileJson, RefusesBadNumbersAndNamesTheField) {
  for (const char* field :
       {"forward_us", "backward_input_us", "backward_weight_us", "update_us", "output_bytes", "param_bytes",
        "prepared_bytes", "stash_bytes", "scratch_bytes", "flops"}) {
    expect_has(profile_refusal([&](json& f) { f["nodes"][1][field] = -1; }),
               std::string("nodes[1].") + field);
    expect_has(profile_refusal([&](json& f) { f["nodes"][1][field] = "1"; }),
               std::string("nodes[1].") + field);
  }
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["output_bytes"] = 1.5; }), "output_bytes");
  expect_has(
      profile_refusal([](json& f) { f["nodes"][1]["output_bytes"] = std::numeric_limits<int64_t>::max(); }),
      "output_bytes");
  expect_has(profile_refusal([](json& f) { f["overhead_us"] = -0.1; }), "overhead_us");
  expect_has(profile_refusal([](json& f) { f["link"]["bytes_per_s"] = -1; }), "link.bytes_per_s");
  expect_has(profile_refusal([](json& f) { f["threads"] = 0; }), "threads");
  expect_has(profile_refusal([](json& f) { f["ranks_at_once"] = 0; }), "ranks_at_once");
}

TEST(ProfileJson, RefusesNumbersBeyondADouble) {
  std::string huge = to_json(sample_profile());
  huge.replace(huge.find("1234.567"), 8, "1e999");
  expect_has(error_of([&] { profile_from_json(huge, "profile.json"); }), "profile.json");
}

TEST(ProfileJson, RefusesNodesThatAreNoGraph) {
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["inputs"] = {1}; }),
             "node 1 can only use earlier nodes, not 1");
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["inputs"] = {2}; }),
             "node 1 can only use earlier nodes, not 2");
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["inputs"] = {-1}; }), "nodes[1].inputs[0]");
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["id"] = 7; }),
             "id 7 stands where node 1 is expected");
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["name"] = "n0"; }), "a second node is named \"n0\"");
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["name"] = ""; }), "the name is empty");
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["role"] = "lead"; }), "\"lead\" is no role");
  expect_has(profile_refusal([](json& f) { f["nodes"][1]["role"] = "input"; }),
             "a node of role input has no inputs");
  expect_has(profile_refusal([](json& f) { f["format"] = "antichain profile 0"; }),
             "\"antichain profile 1\" is expected");
}

}  // namespace
}  // namespace antichain
