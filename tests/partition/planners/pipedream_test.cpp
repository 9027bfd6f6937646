// These tests read real networks: the profiles that PipeDream's authors published with their code (graph.txt
// files).
//
// They are not part of this repository; ANTICHAIN_PIPEDREAM_PROFILES names a folder with files such as
// vgg16.txt. What is expected of them was counted in the files by other means (grep, awk) or published.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>

#include "framework/json.h"
#include "partition/planners/planner.h"
#include "partition/profile/read_profile.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

struct Network {
  const char* name;
  int nodes, edges;
  int64_t compute_us;  // forward and backward, without loading data
  int64_t param_bytes;
  double gflops;  // one image, forward, as published (multiply-adds x 2)
  int side;       // of the images
  int down_sets;  // the empty one included
};

void PrintTo(const Network& network, std::ostream* out) { *out << network.name; }

class PipeDreamProfiles : public ::testing::TestWithParam<Network> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES");
    const std::string path = fmt::format("{}/{}.txt", folder ? folder : ".", GetParam().name);
    if (!folder || !std::filesystem::exists(path))
      GTEST_SKIP() << "set ANTICHAIN_PIPEDREAM_PROFILES to a folder with " << GetParam().name << ".txt";
    text = read_file(path);
    profile = read_profile(text, path);
  }
  std::string text;
  Profile profile;
};

TEST_P(PipeDreamProfiles, AreReadWhole) {
  EXPECT_EQ(profile.model, GetParam().name);
  EXPECT_EQ(int(profile.nodes.size()), GetParam().nodes);
  int edges = 0, inputs = 0;
  int64_t compute_ns = 0, param_bytes = 0;
  for (const ProfileNode& node : profile.nodes) {
    edges += int(node.inputs.size());
    inputs += node.role == Role::input;
    compute_ns += std::llround(node.cost.forward_s * 1e9) + std::llround(node.cost.backward_s() * 1e9);
    param_bytes += node.cost.param_bytes;
  }
  EXPECT_EQ(edges, GetParam().edges);
  EXPECT_EQ(inputs, 1);
  EXPECT_EQ(profile.nodes[0].name, "node1");
  EXPECT_EQ(profile.nodes[0].role, Role::input);
  EXPECT_EQ(compute_ns, GetParam().compute_us * 1000);  // exactly: the files give whole microseconds
  EXPECT_EQ(param_bytes, GetParam().param_bytes);
}

TEST_P(PipeDreamProfiles, MeanTheSameInAnyOrder) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line + "\n");
  std::mt19937 random(5);
  for (int round = 0; round < 3; ++round) {
    std::string shuffled;
    for (size_t i = lines.size() - 1; i > 0; --i) std::swap(lines[i], lines[random() % (i + 1)]);
    for (const std::string& line : lines) shuffled += line;
    ASSERT_EQ(to_json(read_profile(shuffled, std::string(GetParam().name) + ".txt")), to_json(profile));
  }
}

TEST_P(PipeDreamProfiles, HaveThePublishedFlops) {
  double gflops = 0;
  for (const ProfileNode& node : profile.nodes) gflops += node.cost.flops * 1e-9;
  const double image_bytes = 3.0 * GetParam().side * GetParam().side * sizeof(float);
  const double images = double(profile.nodes[0].cost.output_bytes) / image_bytes;
  EXPECT_EQ(images, std::round(images));
  // Published numbers leave out what is elementwise, which is 0.1 % (VGG-16) to 2.7 % (DenseNet-121) here.
  EXPECT_NEAR(gflops / images, GetParam().gflops, 0.03 * GetParam().gflops);
}

TEST_P(PipeDreamProfiles, HaveTheKnownNumberOfDownSetsAndPlanFast) {
  for (const Objective objective : {Objective::compute, Objective::compute_or_transfer}) {
    const PlanOptions options = {
        .stages = 8, .cluster = one_link({.bytes_per_s = 1e10}), .objective = objective};
    const Plan plan = plan_antichain(profile, options), uniform = plan_uniform(profile, options);
    validate(plan, profile);
    EXPECT_EQ(plan.states, GetParam().down_sets);
    EXPECT_LE(plan.bottleneck_s, uniform.bottleneck_s);
    const Plan back = plan_from_json(to_json(plan, profile), "plan.json", profile);
    EXPECT_EQ(plan_hash(back), plan_hash(plan));
    fmt::print("  {:14} {:20} {:>7} states  bottleneck {:8.3f} ms (uniform {:8.3f})\n", GetParam().name,
               name_of(objective), plan.states, plan.bottleneck_s * 1e3, uniform.bottleneck_s * 1e3);
  }
}

// FLOPs are those that torchvision's documentation gives for the same networks. A ResNeXt has the graph of
// its ResNet.
INSTANTIATE_TEST_SUITE_P(
    Networks, PipeDreamProfiles,
    ::testing::Values(Network{"alexnet", 23, 23, 85321, 244403360, 2 * 0.714, 224, 23},
                      Network{"densenet121", 429, 487, 326155, 31915424, 2 * 2.83, 224, 431},
                      Network{"inception_v3", 326, 362, 689038, 108645056, 2 * 5.71, 299, 221565},
                      Network{"resnet101", 347, 380, 411092, 178196640, 2 * 7.80, 224, 411},
                      Network{"resnet18", 71, 79, 259742, 46758048, 2 * 1.81, 224, 101},
                      Network{"resnet50", 177, 193, 443419, 102228128, 2 * 4.09, 224, 241},
                      Network{"resnext101", 347, 380, 557432, 176710816, 2 * 8.0, 224, 411},
                      Network{"resnext50", 177, 193, 590793, 100115616, 2 * 4.23, 224, 241},
                      Network{"squeezenet1_0", 68, 76, 285366, 4993696, 2 * 0.819, 224, 100},
                      Network{"vgg16", 41, 41, 672535, 553430176, 2 * 15.47, 224, 41}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace antichain
