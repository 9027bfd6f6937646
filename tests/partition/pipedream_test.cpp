// Real networks' lattices: the profiles that PipeDream's authors published with their code (graph.txt files).
//
// They are not part of this repository; ANTICHAIN_PIPEDREAM_PROFILES names a folder with files such as vgg16.txt.
// A line is "node7 -- Conv2d(…) -- forward_compute_time=3.2, backward_compute_time=6.6, activation_size=66453504.0, …"
// (milliseconds, bytes) or "\tnode6 -- node7", an edge.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "framework/json.h"
#include "partition/antichain_dag.h"
#include "partition/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace testing;

double figure(const std::string& line, const std::string& key) {
  return std::stod(line.substr(line.find(key + "=") + key.size() + 1));
}

// In topological order: by number of the longest path, then by name.
Profile read_pipedream(const std::string& path) {
  std::map<std::string, ProfileNode> nodes;
  std::map<std::string, std::vector<std::string>> inputs;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) {
    size_t separator = line.find(" -- ");
    if (line[0] == '\t') {
      inputs[line.substr(separator + 4)].push_back(line.substr(1, separator - 1));
      continue;
    }
    ProfileNode& node = nodes[line.substr(0, separator)];
    node.name = line.substr(0, separator);
    node.op = line.substr(separator + 4, line.find('(', separator) - separator - 4);
    if (line.find("-- Input --") != std::string::npos) node.role = Role::input;
    node.cost.forward_s = figure(line, "forward_compute_time") * 1e-3;
    node.cost.backward_input_s = figure(line, "backward_compute_time") * 1e-3;
    node.cost.output_bytes = int64_t(figure(line, "activation_size"));
  }
  Profile profile;
  profile.model = path;
  std::map<std::string, int> placed;
  while (placed.size() < nodes.size()) {
    size_t before = placed.size();
    for (auto& [name, node] : nodes) {
      bool ready = !placed.count(name);
      for (const std::string& u : inputs[name]) ready = ready && placed.count(u);
      if (!ready) continue;
      for (const std::string& u : inputs[name]) node.inputs.push_back(placed[u]);
      placed[name] = int(profile.nodes.size());
      profile.nodes.push_back(node);
    }
    if (placed.size() == before) throw Error(path + " has a cycle");
  }
  return profile;
}

class PipeDreamProfiles : public ::testing::TestWithParam<std::pair<std::string, int>> {};

TEST_P(PipeDreamProfiles, have_the_known_number_of_down_sets_and_plan_fast) {
  const auto& [name, down_sets] = GetParam();
  const char* folder = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES");
  std::string path = fmt::format("{}/{}.txt", folder ? folder : ".", name);
  if (!folder || !std::filesystem::exists(path))
    GTEST_SKIP() << "set ANTICHAIN_PIPEDREAM_PROFILES to a folder with " << name << ".txt";
  Profile profile = read_pipedream(path);
  for (const char* objective : {"compute", "compute-or-transfer"}) {
    PlanOptions options = {.stages = 8, .link = {.bytes_per_s = 1e10}, .objective = objective};
    Plan plan = plan_antichain(profile, options), uniform = plan_uniform(profile, options);
    validate(plan, profile);
    EXPECT_EQ(plan.states, down_sets);
    EXPECT_LE(plan.bottleneck_s, uniform.bottleneck_s);
    fmt::print("  {:14} {:20} {:>7} states  {:8.3f} ms planning  bottleneck {:8.3f} ms (uniform {:8.3f})\n",
               name, objective, plan.states, plan.planning_s * 1e3, plan.bottleneck_s * 1e3,
               uniform.bottleneck_s * 1e3);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PipeDreamProfiles,
                         ::testing::Values(std::pair("vgg16", 41), std::pair("resnet18", 101),
                                           std::pair("resnet50", 241), std::pair("resnet101", 411),
                                           std::pair("alexnet", 23), std::pair("densenet121", 431),
                                           std::pair("squeezenet1_0", 100),
                                           std::pair("inception_v3", 221565)),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace antichain
