// These tests are about cut files and the planner that obeys them.
#include "partition/plan/cut_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "framework/json.h"
#include "partition/planners/planner.h"
#include "partition/profile/read_profile.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

TEST(CutFile, HasCommentsAndLines) {
  const std::vector<CutLine> lines = parse_cuts("# why\n\n2: a.b   # here\r\n  3 :\tx y\n", "file");
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0].line, 3);
  EXPECT_EQ(lines[0].stages, 2);
  EXPECT_EQ(lines[0].last_nodes, std::vector<std::string>({"a.b"}));
  EXPECT_EQ(lines[1].line, 4);
  EXPECT_EQ(lines[1].stages, 3);
  EXPECT_EQ(lines[1].last_nodes, std::vector<std::string>({"x", "y"}));
  EXPECT_TRUE(parse_cuts("", "file").empty());
}

TEST(CutFile, ErrorsNameTheLine) {
  auto error = [](const std::string& text) { return error_of([&] { parse_cuts(text, "my.cuts"); }); };
  expect_has(error("# c\nnodes a b\n"),
             "my.cuts:2: the line does not begin with a number of stages and a colon");
  expect_has(error("two: a\n"), "my.cuts:1: the line does not begin");
  expect_has(error("2x: a\n"), "my.cuts:1: the line does not begin");
  expect_has(error(": a\n"), "my.cuts:1: the line does not begin");
  expect_has(error("99999999999: a\n"), "my.cuts:1: the line does not begin");
  expect_has(error("\n\n1:\n"), "my.cuts:3: 1 stages need no cut");
  expect_has(error("-2: a\n"), "-2 stages need no cut");
  expect_has(error("3: a\n"), "my.cuts:1: 3 stages have 2 cuts, but 1 nodes are named");
  expect_has(error("2:\n"), "2 stages have 1 cuts, but 0 nodes are named");
  expect_has(error("3: a a\n"), "the node a is there twice");
}

TEST(CutFile, TheFirstLineWhoseNamesExistCounts) {
  const std::vector<CutLine> lines = parse_cuts("2: conv\n2: n2\n2: n3\n4: n1 n2 n3\n3: n1 pool\n", "file");
  const Profile profile = chain(5);
  EXPECT_EQ(choose_cut_line(lines, profile, 2, false).line, 2);
  EXPECT_EQ(choose_cut_line(lines, profile, 3, true).line, 2);
  EXPECT_EQ(choose_cut_line(lines, profile, 5, true).line, 4);
  expect_has(error_of([&] { choose_cut_line(lines, profile, 3, false); }),
             "there are no cuts into 3 stages for chain, only into 2, 4");
  expect_has(error_of([&] { choose_cut_line(parse_cuts("2: conv\n", "file"), profile, 2, false); }),
             "the cuts for chain name nodes that this profile does not have");
}

TEST(Handsplit, CutsWhereItIsToldTo) {
  const Profile profile = chain(6);  // node 0 is the input
  for (const std::vector<std::string>& cuts :
       {std::vector<std::string>{"n2", "n3"}, {"2", "3"}, {"n2", "3"}}) {
    const Plan plan = plan_handsplit(profile, {.stages = 3, .cuts = cuts});
    validate(plan, profile);
    EXPECT_EQ(plan.stages[0].nodes, std::vector<int>({1, 2}));
    EXPECT_EQ(plan.stages[1].nodes, std::vector<int>({3}));
    EXPECT_EQ(plan.stages[2].nodes, std::vector<int>({4, 5, 6}));
    EXPECT_EQ(plan.method, "handsplit");
  }
  EXPECT_EQ(plan_handsplit(profile, {.stages = 1}).stages.size(), 1);
  EXPECT_EQ(plan_handsplit(profile, {.stages = 4, .at_most = true, .cuts = {"n1"}}).stages.size(), 2);
}

TEST(Handsplit, RefusesCutsThatAreNone) {
  Profile profile = chain(6);
  auto error = [&](int stages, std::vector<std::string> cuts) {
    return error_of([&] { plan_handsplit(profile, {.stages = stages, .cuts = cuts}); });
  };
  expect_has(error(2, {"x"}), "chain has no node \"x\" to cut after");
  expect_has(error(2, {"7"}), "chain has no node \"7\" to cut after");
  expect_has(error(2, {"-1"}), "no node \"-1\"");
  expect_has(error(2, {"n0"}), "node n0 is an input and belongs to no stage");
  expect_has(error(3, {"n1"}), "1 cuts make 2 stages, but 3 were asked for");
  expect_has(error(2, {"n1", "n2"}), "2 cuts make 3 stages, but 2 were asked for");
  expect_has(error(1, {"n1"}), "1 cuts were given for 1 stage");
  expect_has(error(3, {"n3", "n2"}), "the cut after n2 does not come after the one after n3");
  expect_has(error(3, {"n3", "n3"}), "the cut after n3 does not come after the one after n3");
  expect_has(error(2, {"n6"}), "the cut after n6 leaves stage 1 empty: it is the last node");
  expect_has(error(2, {}), "no cuts are shipped for chain");
  profile.ids_are_names = true;
  expect_has(error(2, {"2"}), "no node \"2\"");
}

TEST(ShippedCuts, AllParseAndServe24And8Stages) {
  const std::vector<std::string> models = models_with_shipped_cuts();
  for (const char* model : {"vgg16", "resnet18", "resnet20", "alexnet", "densenet121", "inception_v3",
                            "resnet50", "resnet101", "resnext50", "resnext101", "squeezenet1_0"})
    EXPECT_EQ(std::count(models.begin(), models.end(), model), 1) << model;
  EXPECT_FALSE(shipped_cuts("magic"));
  for (const std::string& model : models) {
    const std::string text(shipped_cuts(model).value());
    EXPECT_EQ(text[0], '#') << model << " does not begin with the reasons";
    std::multiset<int> stages;
    for (const CutLine& line : parse_cuts(text, model)) stages.insert(line.stages);
    for (int s : {2, 4, 8}) EXPECT_GE(stages.count(s), 1) << model << " at " << s;
  }
}

TEST(ShippedCuts, FitThePublishedProfiles) {
  const char* folder = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES");
  int found = 0;
  for (const std::string& model : models_with_shipped_cuts()) {
    const std::string path = fmt::format("{}/{}.txt", folder ? folder : ".", model);
    if (!std::filesystem::exists(path)) continue;
    ++found;
    const Profile profile = read_profile(read_file(path), path);
    ASSERT_EQ(profile.model, model);
    for (int stages : {2, 4, 8}) {
      const Plan plan = plan_handsplit(profile, {.stages = stages, .objective = Objective::compute});
      validate(plan, profile);
      const Plan exact =
          plan_antichain(profile, {.stages = stages, .objective = Objective::compute, .max_states = 10'000});
      fmt::print("  {:14} {} stages: {:.2f} of the mean at the slowest ({:.2f})\n", model, stages,
                 plan.bottleneck_s / plan.lower_bound_s, exact.bottleneck_s / plan.lower_bound_s);
      EXPECT_LE(exact.bottleneck_s, plan.bottleneck_s);
    }
  }
  if (found == 0) GTEST_SKIP() << "set ANTICHAIN_PIPEDREAM_PROFILES to a folder with vgg16.txt and so on";
}

}  // namespace
}  // namespace antichain
