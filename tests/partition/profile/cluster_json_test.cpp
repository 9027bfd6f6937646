// A cluster.json is written and read back, and refused in every way that it can be wrong.
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/json.h"
#include "partition/profile/cluster.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;
using nlohmann::json;

// Two nodes of three devices, then one of a single fast device without a limit.
const char* const sample_cluster = R"({
  "format": "antichain cluster 1",
  "within_node": {"bytes_per_s": 200000000000, "latency_us": 3.000},
  "between_nodes": {"bytes_per_s": 0, "latency_us": 10.500, "core_share": 0.250},
  "nodes": [
    {"devices": [{"speed": 1, "memory_bytes": 16000000000, "count": 2}, )"
                                   R"({"speed": 0.5, "memory_bytes": 8}], "count": 2},
    {"devices": [{"speed": 2.5, "memory_bytes": 0}]}
  ]
}
)";

std::string cluster_refusal(const std::function<void(json&)>& edit) {
  json file = json::parse(sample_cluster);
  edit(file);
  return error_of([&] { cluster_from_json(file.dump(), "cluster.json"); });
}

TEST(ClusterJson, SaysWhatThereIs) {
  const Cluster cluster = cluster_from_json(sample_cluster, "cluster.json");
  ASSERT_EQ(cluster.devices.size(), 7u);
  const int nodes[] = {0, 0, 0, 1, 1, 1, 2};
  for (int d = 0; d < 7; ++d) EXPECT_EQ(cluster.devices[d].node, nodes[d]);
  EXPECT_EQ(cluster.devices[4], (Device{.speed = 1, .memory_bytes = 16000000000, .node = 1}));
  EXPECT_EQ(cluster.devices[5], (Device{.speed = 0.5, .memory_bytes = 8, .node = 1}));
  EXPECT_EQ(cluster.devices[6], (Device{.speed = 2.5, .memory_bytes = 0, .node = 2}));
  EXPECT_EQ(cluster.within_node.bytes_per_s, 2e11);
  EXPECT_DOUBLE_EQ(cluster.within_node.latency_s, 3e-6);
  EXPECT_EQ(cluster.between_nodes.bytes_per_s, 0);
  EXPECT_DOUBLE_EQ(cluster.between_nodes.latency_s, 10.5e-6);
  EXPECT_EQ(cluster.within_node.core_share, 0);
  EXPECT_EQ(cluster.between_nodes.core_share, 0.25);
}

TEST(ClusterJson, ComesBackAsTheSameText) {
  EXPECT_EQ(to_json(cluster_from_json(sample_cluster, "cluster.json")), sample_cluster);
}

TEST(ClusterJson, KindsOfDevicesHaveProfiles) {
  json file = json::parse(sample_cluster);
  file["profiles"] = json::parse(R"([{"name": "cpu", "file": "cpu.json"}])");
  file["nodes"][1]["devices"][0]["profile"] = "cpu";
  file["nodes"][1]["devices"][0]["host"] = true;
  const auto refusal_of = [&] { return error_of([&] { cluster_from_json(file.dump(), "c.json"); }); };
  expect_has(refusal_of(), "text");
  file["profiles"][0]["text"] = to_json(chain(3));
  const Cluster cluster = cluster_from_json(file.dump(), "c.json");
  EXPECT_EQ(cluster.devices[6], (Device{.speed = 2.5, .node = 2, .profile = 0, .host = true}));
  EXPECT_EQ(cluster.profile(0, chain(1)).nodes.size(), chain(3).nodes.size());
  EXPECT_EQ(to_json(cluster_from_json(to_json(cluster), "c.json")), to_json(cluster));
  file["nodes"][1]["devices"][0]["profile"] = "gpu";
  expect_has(refusal_of(), "no profile is named \"gpu\"");
  file["profiles"].push_back(file["profiles"][0]);
  expect_has(refusal_of(), "a second profile is named \"cpu\"");
}

TEST(ClusterJson, ProfilesAreBesideTheCluster) {
  const std::string folder = testing::TempDir() + "kinds";
  std::filesystem::create_directories(folder);
  write_file(folder + "/cpu.json", to_json(chain(3)));
  json file = json::parse(sample_cluster);
  EXPECT_EQ(with_profiles(file.dump(), folder + "/c.json"), file.dump());
  file["profiles"] = json::parse(R"([{"name": "cpu", "file": "cpu.json"}])");
  const std::string text = with_profiles(file.dump(), folder + "/c.json");
  EXPECT_EQ(cluster_from_json(text, "c.json").profiles[0].profile->nodes.size(), chain(3).nodes.size());
  file["profiles"][0]["file"] = "gpu.json";
  expect_has(error_of([&] { with_profiles(file.dump(), folder + "/c.json"); }), "gpu.json");
}

TEST(ClusterJson, EqualNeighboursAreCountedTogether) {
  json file = json::parse(sample_cluster);
  file["nodes"].insert(file["nodes"].begin(), file["nodes"][0]);
  file["nodes"][0]["count"] = 1;
  file["nodes"][0]["devices"][0]["count"] = 1;
  file["nodes"][0]["devices"].insert(file["nodes"][0]["devices"].begin(), file["nodes"][0]["devices"][0]);
  file["nodes"][1]["count"] = 1;
  EXPECT_EQ(to_json(cluster_from_json(file.dump(), "cluster.json")), sample_cluster);
}

TEST(ClusterJson, AsManyDevicesAsAreAskedFor) {
  const Cluster any = one_link({.bytes_per_s = 1e9, .latency_s = 1e-6});
  const std::string text = to_json(any);
  const Cluster back = cluster_from_json(text, "cluster.json");
  EXPECT_TRUE(back.devices.empty());
  EXPECT_EQ(back.within_node.bytes_per_s, 1e9);
  EXPECT_EQ(to_json(back), text);
}

TEST(ClusterJson, Holds4096DevicesAndNoMore) {
  json file = json::parse(sample_cluster);
  file["nodes"] =
      json::parse(R"([{"devices": [{"speed": 1, "memory_bytes": 0, "count": 64}], "count": 64}])");
  EXPECT_EQ(cluster_from_json(file.dump(), "c").devices.size(), 4096u);
  EXPECT_EQ(to_json(cluster_from_json(to_json(equal_devices(4096, {})), "c")),
            to_json(equal_devices(4096, {})));
  const char* more = "these are more than 4096 devices";
  expect_has(cluster_refusal([](json& f) { f["nodes"][0]["count"] = 1366; }), more);
  expect_has(cluster_refusal([](json& f) { f["nodes"][0]["count"] = 4097; }), "nodes[0].count");
  expect_has(cluster_refusal([](json& f) { f["nodes"][1]["devices"][0]["count"] = 4096; }), more);
  expect_has(cluster_refusal([](json& f) { f["nodes"][0]["devices"][0]["count"] = 4096; }), more);
}

TEST(ClusterJson, DevicesAreListedNodeByNode) {
  Cluster cluster = equal_devices(3, {});
  cluster.devices[1].node = 1;
  EXPECT_THROW(to_json(cluster), Error);  // 0, 1, 0
  cluster.devices[2].node = 1;
  EXPECT_NO_THROW(to_json(cluster));
  cluster.devices[2].node = 3;
  EXPECT_THROW(to_json(cluster), Error);
}

TEST(ClusterJson, RefusesMissingAndUnknownFields) {
  for (const char* field : {"format", "within_node", "between_nodes", "nodes"})
    expect_has(cluster_refusal([&](json& f) { f.erase(field); }), field);
  for (const char* field : {"bytes_per_s", "latency_us"})
    expect_has(cluster_refusal([&](json& f) { f["between_nodes"].erase(field); }), field);
  for (const char* field : {"speed", "memory_bytes"})
    expect_has(cluster_refusal([&](json& f) { f["nodes"][0]["devices"][1].erase(field); }),
               "nodes[0].devices[1]");
  expect_has(cluster_refusal([](json& f) { f["nodes"][1].erase("devices"); }), "nodes[1]");
  for (const char* path : {"", "/within_node", "/nodes/0", "/nodes/0/devices/0"})
    expect_has(cluster_refusal([&](json& f) { f[json::json_pointer(path)]["colour"] = 1; }),
               "unknown field \"colour\"");
  expect_has(cluster_refusal([](json& f) { f["format"] = "antichain cluster 7"; }),
             "\"antichain cluster 1\" is expected");
}

TEST(ClusterJson, RefusesNumbersThatNoDeviceHas) {
  for (const json& speed : {json(0), json(-1), json(1e-7), json(1e7), json("fast")})
    expect_has(cluster_refusal([&](json& f) { f["nodes"][1]["devices"][0]["speed"] = speed; }),
               "nodes[1].devices[0].speed");
  for (const json& bytes : {json(-1), json(1.5), json(std::numeric_limits<int64_t>::max())})
    expect_has(cluster_refusal([&](json& f) { f["nodes"][1]["devices"][0]["memory_bytes"] = bytes; }),
               "nodes[1].devices[0].memory_bytes");
  for (const json& count : {json(0), json(-1), json(1.5), json(int64_t(1) << 40)}) {
    expect_has(cluster_refusal([&](json& f) { f["nodes"][0]["count"] = count; }), "nodes[0].count");
    expect_has(cluster_refusal([&](json& f) { f["nodes"][0]["devices"][0]["count"] = count; }),
               "nodes[0].devices[0].count");
  }
  expect_has(cluster_refusal([](json& f) { f["within_node"]["bytes_per_s"] = -1; }),
             "within_node.bytes_per_s");
  expect_has(cluster_refusal([](json& f) { f["between_nodes"]["core_share"] = 1.5; }),
             "between_nodes.core_share: 1.5 is more than a whole core");
  expect_has(cluster_refusal([](json& f) { f["between_nodes"]["latency_us"] = -1; }),
             "between_nodes.latency_us");
  expect_has(cluster_refusal([](json& f) { f["nodes"][1]["devices"] = json::array(); }),
             "a node without devices");
}

TEST(ClusterJson, RefusesAFileCutOffAnywhere) {
  const std::string text = sample_cluster;
  for (size_t length = 0; length + 2 < text.size(); length += 7)
    EXPECT_THROW(cluster_from_json(text.substr(0, length), "cluster.json"), Error);
}

}  // namespace
}  // namespace antichain
