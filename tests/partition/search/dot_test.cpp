// Every node, edge and stage of a picture is drawn, and Graphviz understands whatever a node is called.
#include "partition/search/dot.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "framework/json.h"
#include "partition/planners/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++times;
  return times;
}

AntichainDag dag_of(const Profile& profile) {
  CutGraph graph = cut_graph(profile);
  ChainCover cover = *chain_cover(graph);
  return *AntichainDag::build(std::move(graph), std::move(cover), 1000);
}

// Returns what Graphviz says about the picture, or nothing when it is content or not installed.
std::string complaint(const std::string& dot) {
  if (std::system("command -v dot >/dev/null 2>&1") != 0) return "";
  const std::string path =
      fmt::format("{}antichain-{}.dot", ::testing::TempDir(), ::getpid());  // tests run side by side
  write_file(path, dot);
  const int status = std::system(("dot -Tcanon " + path + " >" + path + ".out 2>&1").c_str());
  const std::string said = status == 0 ? "" : read_file(path + ".out");
  std::remove(path.c_str());
  std::remove((path + ".out").c_str());
  return said;
}

Plan two_stages(const Profile& profile) { return plan_uniform(profile, {.stages = 2}); }

TEST(PlanDot, DrawsEveryNodeInItsStageAndInputsOutside) {
  const Profile profile = chain(4);  // n0 is the input
  const std::string dot = to_dot(two_stages(profile), profile);
  const size_t first = dot.find("subgraph cluster_0"), second = dot.find("subgraph cluster_1");
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(dot.find("n0 [label=\"n0\", shape=ellipse"), first);
  for (const char* node : {"n1 [label=\"n1\\nwork · 0.003 ms\"]", "n2 [label="}) {
    EXPECT_GT(dot.find(node), first) << node;
    EXPECT_LT(dot.find(node), second) << node;
  }
  for (const char* node : {"n3 [label=", "n4 [label="}) EXPECT_GT(dot.find(node), second) << node;
  expect_has(dot, "label=\"stage 0 · rank 0 · 0.006 ms\"");
  expect_has(dot, "style=\"rounded,filled,solid\"");
  EXPECT_EQ(count(dot, " -> "), 4);
  EXPECT_EQ(complaint(dot), "");
}

TEST(PlanDot, CutEdgesAreBoldAndSayHowMuchCrosses) {
  Profile profile = chain(4);
  profile.nodes[2].cost.output_bytes = 3 << 19;
  const std::string dot = to_dot(two_stages(profile), profile);
  expect_has(dot, "n2 -> n3 [penwidth=3, color=\"#222222\", label=\" 1.50 MiB\"];");
  expect_has(dot, "n1 -> n2;");
  expect_has(dot, "n0 -> n1 [style=dashed];");
  EXPECT_EQ(count(dot, "penwidth=3"), 1);
}

TEST(PlanDot, ATensorIsLabelledOncePerStageThatItIsSentTo) {
  Profile profile = chain(1);
  add(profile, {1});
  add(profile, {1, 2});
  add(profile, {1});
  Plan plan = plan_uniform(profile, {.stages = 2});
  plan.stages[0].nodes = {1, 2};
  plan.stages[1].nodes = {3, 4};
  const std::string together = to_dot(plan, profile);
  EXPECT_EQ(count(together, "n1 -> n3 [penwidth=3, color=\"#222222\", label=\" 100 B\"];"), 1);
  EXPECT_EQ(count(together, "n1 -> n4 [penwidth=3, color=\"#222222\"];"), 1);
  plan.stages[1].nodes = {3};
  plan.stages.push_back({.nodes = {4}, .ranks = {2}});
  const std::string apart = to_dot(plan, profile);
  for (const char* edge : {"n1 -> n3", "n1 -> n4"})
    EXPECT_EQ(count(apart, std::string(edge) + " [penwidth=3, color=\"#222222\", label=\" 100 B\"];"), 1);
}

TEST(PlanDot, ListsReplicasAndDevices) {
  const Profile profile = chain(4);
  Plan plan = two_stages(profile);
  plan.stages[0].ranks = {0, 2};
  plan.stages[1].devices = {7};
  const std::string dot = to_dot(plan, profile);
  expect_has(dot, "stage 0 · ranks 0, 2 · ");
  expect_has(dot, "stage 1 · rank 1 on device 7 · ");
}

TEST(PlanDot, NoTwoOf24StagesLookAlike) {
  const Profile profile = chain(24);
  const std::string dot = to_dot(plan_uniform(profile, {.stages = 24}), profile);
  std::vector<std::string> looks;  // frame and colours of each stage
  std::istringstream lines(dot);
  for (std::string line; std::getline(lines, line);)
    if (line.find("rounded,filled,") != std::string::npos) looks.push_back(line);
  std::sort(looks.begin(), looks.end());
  EXPECT_EQ(looks.size(), 24u);
  EXPECT_EQ(std::unique(looks.begin(), looks.end()), looks.end());
}

TEST(PlanDot, AnyNameIsALegalName) {
  Profile profile = chain(3);
  profile.model = "a \"model\"\\";
  profile.nodes[1].name = "say \"hi\" \\N {a|b} <c>\n]; }\t";
  profile.nodes[2].op = "ü\\";
  const std::string dot = to_dot(two_stages(profile), profile);
  expect_has(dot, R"(label="say \"hi\" \\N {a|b} <c>\n]; } \nwork)");
  EXPECT_EQ(complaint(dot), "");
}

TEST(PlanDot, NeedsAValidPlan) {
  const Profile profile = chain(3);
  Plan plan = two_stages(profile);
  plan.stages[0].nodes.clear();
  EXPECT_THROW(to_dot(plan, profile), Error);
}

TEST(AntichainDot, DrawsEveryStateAndStep) {
  const Profile profile = parallel_chains(2, 2);  // (2 + 1)^2 states on a grid of 2 x 3 x 2 edges
  const std::string dot = to_dot(dag_of(profile), profile, 9);
  EXPECT_EQ(count(dot, "[label=\"{"), 9);
  EXPECT_EQ(count(dot, " -> "), 12);
  expect_has(dot, "s0 [label=\"{}\\n0 ms\"];");
  expect_has(dot, "{n2, n3}\\n0.012 ms");
  EXPECT_EQ(dot.find("more states"), std::string::npos);
  EXPECT_EQ(complaint(dot), "");
}

TEST(AntichainDot, SaysHowManyStatesAreLeftOut) {
  const Profile profile = parallel_chains(2, 2);
  const std::string dot = to_dot(dag_of(profile), profile, 4);
  EXPECT_EQ(count(dot, "[label=\"{"), 4);
  expect_has(dot, "5 more states");
  EXPECT_EQ(dot.find("s4"), std::string::npos);
  EXPECT_EQ(complaint(dot), "");
  expect_has(to_dot(dag_of(profile), profile, 0), "9 more states");
}

}  // namespace
}  // namespace antichain
