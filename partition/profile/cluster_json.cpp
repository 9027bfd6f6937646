// Reads and writes cluster.json: each node has one line, and equal neighbours are written once with their
// count.
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/error.h"
#include "framework/json.h"
#include "partition/profile/cluster.h"
#include "partition/profile/json_text.h"
#include "partition/profile/read_profile.h"

namespace antichain {
namespace {

constexpr const char* cluster_format = "antichain cluster 1";
constexpr int most_devices = 4096;
constexpr double slowest = 1e-6, fastest = 1e6;

// Writes ", "count": 3" for each run of equal texts.
std::vector<std::string> counted(const std::vector<std::string>& texts) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < texts.size();) {
    size_t end = i;
    while (end < texts.size() && texts[end] == texts[i]) ++end;
    runs.push_back(end - i == 1 ? fmt::format("{{{}}}", texts[i])
                                : fmt::format("{{{}, \"count\": {}}}", texts[i], end - i));
    i = end;
  }
  return runs;
}

std::string node_text(const std::vector<std::string>& devices) {
  return fmt::format("\"devices\": [{}]", fmt::join(counted(devices), ", "));
}

std::vector<std::string> node_texts(const Cluster& cluster) {
  std::vector<std::string> nodes, devices;
  for (size_t d = 0; d < cluster.devices.size(); ++d) {
    const Device& device = cluster.devices[d];
    ANTICHAIN_CHECK(
        device.node == int(nodes.size()) || (device.node == int(nodes.size()) + 1 && !devices.empty()),
        "a cluster's devices are listed node by node");
    if (device.node > int(nodes.size())) {
      nodes.push_back(node_text(devices));
      devices.clear();
    }
    const std::string kind =
        device.profile < 0
            ? ""
            : fmt::format(", \"profile\": {}", quoted(cluster.profiles[size_t(device.profile)].name));
    devices.push_back(fmt::format("\"speed\": {}, \"memory_bytes\": {}{}{}", device.speed,
                                  device.memory_bytes, kind, device.host ? ", \"host\": true" : ""));
  }
  if (!devices.empty()) nodes.push_back(node_text(devices));
  return nodes;
}

// Returns how often an entry is repeated. A repeated entry has `each` devices, and `already` are there.
int count_of(JsonReader& field, size_t each, size_t already) {
  const int count = field.has("count") ? int(field.at("count").integer(1, most_devices)) : 1;
  if (already + each * size_t(count) > size_t(most_devices))
    field.fail(fmt::format("these are more than {} devices", most_devices));
  return count;
}

double speed_of(const JsonReader& field) {
  const double speed = field.number();
  if (speed < slowest || speed > fastest)
    field.fail(fmt::format("the speed {} is not from {} to {}", speed, slowest, fastest));
  return speed;
}

std::vector<KindProfile> profiles_of(const JsonReader& field) {
  std::vector<KindProfile> profiles;
  for (JsonReader element : field.elements()) {
    KindProfile kind = {element.at("name").string(), element.at("file").string(), nullptr};
    if (std::ranges::count(profiles, kind.name, &KindProfile::name) > 0)
      element.fail(fmt::format("a second profile is named \"{}\"", kind.name));
    kind.profile = std::make_shared<Profile>(read_profile(element.at("text").string(), kind.file));
    profiles.push_back(std::move(kind));
    element.done();
  }
  return profiles;
}

std::string profiles_text(const std::vector<KindProfile>& profiles) {
  std::vector<std::string> lines;
  for (const KindProfile& kind : profiles)
    lines.push_back(fmt::format("\n    {{\"name\": {}, \"file\": {}, \"text\": {}}}", quoted(kind.name),
                                quoted(kind.file), quoted(to_json(*kind.profile))));
  return lines.empty() ? "" : fmt::format("\n  \"profiles\": [{}\n  ],", fmt::join(lines, ","));
}

int profile_of(const JsonReader& field, const std::vector<KindProfile>& profiles) {
  const auto found = std::ranges::find(profiles, field.string(), &KindProfile::name);
  if (found == profiles.end()) field.fail(fmt::format("no profile is named \"{}\"", field.string()));
  return int(found - profiles.begin());
}

std::vector<Device> devices_of(const JsonReader& field, const std::vector<KindProfile>& profiles) {
  std::vector<Device> devices;
  for (JsonReader element : field.elements()) {
    Device device = {.speed = speed_of(element.at("speed")),
                     .memory_bytes = element.at("memory_bytes").integer(0, most_of_all)};
    if (element.has("profile")) device.profile = profile_of(element.at("profile"), profiles);
    device.host = element.has("host") && element.at("host").boolean();
    devices.insert(devices.end(), size_t(count_of(element, 1, devices.size())), device);
    element.done();
  }
  if (devices.empty()) field.fail("a node without devices is no node");
  return devices;
}

}  // namespace

std::string to_json(const Cluster& cluster) {
  std::vector<std::string> lines;
  for (const std::string& node : counted(node_texts(cluster))) lines.push_back("\n    " + node);
  return fmt::format(
      R"({{
  "format": "{}",{}
  "within_node": {},
  "between_nodes": {},
  "nodes": [{}{}]
}}
)",
      cluster_format, profiles_text(cluster.profiles), to_json(cluster.within_node),
      to_json(cluster.between_nodes), fmt::join(lines, ","), lines.empty() ? "" : "\n  ");
}

Cluster cluster_from_json(const std::string& text, const std::string& origin) {
  const nlohmann::json json = parse_json(text, origin);
  JsonReader file(json, origin);
  if (std::string format = file.at("format").string(); format != cluster_format)
    file.fail(fmt::format("the format is \"{}\", but \"{}\" is expected", format, cluster_format));
  Cluster cluster;
  cluster.within_node = link_from_json(file.at("within_node"));
  cluster.between_nodes = link_from_json(file.at("between_nodes"));
  if (file.has("profiles")) cluster.profiles = profiles_of(file.at("profiles"));
  int node = 0;
  for (JsonReader element : file.at("nodes").elements()) {
    std::vector<Device> devices = devices_of(element.at("devices"), cluster.profiles);
    const int count = count_of(element, devices.size(), cluster.devices.size());
    element.done();
    for (int end = node + count; node < end; ++node)
      for (Device device : devices) {
        device.node = node;
        cluster.devices.push_back(device);
      }
  }
  file.done();
  return cluster;
}

std::string with_profiles(const std::string& text, const std::string& origin) {
  nlohmann::json json = parse_json(text, origin);
  if (!json.is_object() || !json.contains("profiles") || !json["profiles"].is_array()) return text;
  for (nlohmann::json& kind : json["profiles"])
    if (kind.is_object() && kind.contains("file") && kind["file"].is_string() && !kind.contains("text"))
      kind["text"] = read_file(std::filesystem::path(origin).parent_path() / kind["file"].get<std::string>());
  return json.dump();
}

}  // namespace antichain
