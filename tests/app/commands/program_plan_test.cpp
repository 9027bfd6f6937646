// These tests plan as a user does, on a network small enough to plan by hand:
//
//   node1 ─▶ node2 ─▶ node3 ─▶ node4 ─▶ node5 ─▶ node6      and node2 ─▶ node4
//   (input)   3 ms      2        4        1        3         forward + backward
//             2 MiB     1        1        ½        0         of output
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/json.h"
#include "tests/app/program.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t mib = 1 << 20;

// The lines have no order.
constexpr const char* graph_txt =
    "node6 -- Linear(in_features=8, out_features=8, bias=True) -- forward_compute_time=1.000, "
    "backward_compute_time=2.000, activation_size=4096.000, parameter_size=4194304.000\n"
    "node1 -- Input0 -- forward_compute_time=7.000, backward_compute_time=0.000, "
    "activation_size=1048576.000, "
    "parameter_size=0.000\n"
    "node2 -- Conv2d(3, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)) -- "
    "forward_compute_time=1.000, "
    "backward_compute_time=2.000, activation_size=2097152.000, parameter_size=1048576.000\n"
    "node3 -- ReLU(inplace) -- forward_compute_time=1.000, backward_compute_time=1.000, "
    "activation_size=1048576.000, parameter_size=0.000\n"
    "node4 -- Conv2d(64, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)) -- "
    "forward_compute_time=2.000, "
    "backward_compute_time=2.000, activation_size=1048576.000, parameter_size=2097152.000\n"
    "node5 -- ReLU(inplace) -- forward_compute_time=0.500, backward_compute_time=0.500, "
    "activation_size=524288.000, parameter_size=0.000\n"
    "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n\tnode2 -- node4\n\tnode4 -- node5\n\tnode5 -- "
    "node6\n";

// The slow device comes first in the file.
constexpr const char* two_devices = R"({"format": "antichain cluster 1",
  "within_node": {"bytes_per_s": 2e10, "latency_us": 3},
  "between_nodes": {"bytes_per_s": 1e9, "latency_us": 20},
  "nodes": [{"devices": [{"speed": 1, "memory_bytes": 0}]},
            {"devices": [{"speed": 2, "memory_bytes": 100000000}]}]})";

class PlanProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_file(path("small.txt"), graph_txt);
    write_file(path("cluster.json"), two_devices);
    write_file(path("my.cuts"), "# behind the convolutions\n2: node4\n3: node2 node4\n");
    write_file(path("s.txt"), "a schedule");
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string path(const std::string& name) { return folder_->str() + "/" + name; }
  static ProgramRun run(const std::string& words) { return run_program(folder_->str(), words); }
  static void refused(const std::string& words, int code, const std::string& part) {
    const ProgramRun result = run(words);
    expect_refused(result, code, part, words);
    EXPECT_EQ(result.out, "") << words << ": nothing is printed before";
  }
  static Json json_of(const std::string& words) {
    const ProgramRun result = run(words + " --json out.json");
    EXPECT_EQ(result.code, 0) << words << "\n" << result.err;
    return Json::parse(read_file(path("out.json")));
  }
  // The plan is for a step of 32 micro-batches and by the slowest stage or boundary, which is what can be
  // worked out by hand.
  static std::string by_hand(const std::string& words) {
    const auto unless = [&](const char* option, const char* value) {
      return words.find(option) == std::string::npos ? std::string(" ") + option + " " + value : "";
    };
    return words + unless("--objective", "compute-or-transfer") + unless("--microbatches", "32");
  }
  static Json plan(const std::string& words) { return json_of(by_hand("plan --profile small.txt " + words)); }
  static std::string printed(const std::string& words) {
    const ProgramRun result = run(words);
    EXPECT_EQ(result.code, 0) << words << "\n" << result.err;
    return result.out;
  }
  static std::string printed_plan(const std::string& words) {
    return printed(by_hand("plan --profile small.txt " + words));
  }
  // Returns the cells of the table's row that begins with `name`.
  static std::vector<std::string> row(const std::string& text, const std::string& name) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::vector<std::string> cells{std::istream_iterator<std::string>(words), {}};
      if (!cells.empty() && cells[0] == "*") cells.erase(cells.begin());
      if (!cells.empty() && cells[0] == name) return cells;
    }
    ADD_FAILURE() << "no row " << name << " in\n" << text;
    return std::vector<std::string>(10);
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* PlanProgram::folder_ = nullptr;

// It is found in the cache or measured: a busy machine decides that.
TEST_F(PlanProgram, KeptProfilesChangeNoNumber) {
  const std::string words =
      "train --model resnet20 --batch 4 --microbatches 2 --steps 2 --local 2 --dataset synthetic --json out ";
  std::set<std::string> states;
  for (const char* cache : {"none", "cache", "cache"}) {
    const ProgramRun result = run(words + "--profile-cache " + cache);
    ASSERT_EQ(result.code, 0) << result.err;
    states.insert(Json::parse(read_file(path("out")))["state"]);
  }
  EXPECT_EQ(states.size(), 1u);
}

TEST_F(PlanProgram, ACpuHasNothingToTune) {
  refused("profile --model resnet20 --tune", 2, "there is nothing to tune on cpu");
}

TEST_F(PlanProgram, ProfilesSayHowNearOperatorsComeToThePeaks) {
  const std::string text =
      printed("profile --model resnet20 --batch 8 --seconds 0.01 --profile-cache none --roofline");
  const std::vector<std::string> convolutions = row(text.substr(text.find("Roofline of a step")), "conv2d");
  ASSERT_EQ(convolutions.size(), 10u) << text;
  for (int number = 1; number < 9; ++number) EXPECT_GT(std::stod(convolutions[size_t(number)]), 0) << text;
  EXPECT_THAT(text, HasSubstr("Peaks of this run, by 1 thread a rank"));
}

TEST_F(PlanProgram, JsonHasEveryNameAndTheFigures) {
  const Json json = plan("--stages 2");
  for (const char* name : {"model", "method", "objective", "stages", "bottleneck_ms", "step_ms",
                           "lower_bound_ms", "gap", "proved_optimal", "states", "planning_ms"})
    EXPECT_TRUE(json.contains(name)) << name;
  for (const Json& stage : json["stages"])
    for (const char* name : {"stage", "ranks", "nodes", "forward_ms", "backward_ms", "compute_ms",
                             "boundary_bytes", "memory_bytes"})
      EXPECT_TRUE(stage.contains(name)) << name;
  EXPECT_EQ(json["model"], "small");
  EXPECT_EQ(json["method"], "antichain");
  EXPECT_EQ(json["objective"], "compute-or-transfer");
  EXPECT_EQ(json["bottleneck_ms"], 8.);
  EXPECT_EQ(json["lower_bound_ms"], 8.);
  EXPECT_EQ(json["gap"], 0.);
  EXPECT_EQ(json["proved_optimal"], true);
  EXPECT_EQ(json["states"], 6);
  // The second stage never waits: 2 ms before its first forward, 32 x 8 ms, 3 ms after its last backward.
  EXPECT_EQ(json["step_ms"], 261.);
  const Json& first = json["stages"][0];
  EXPECT_EQ(first["nodes"], (Json{"node1", "node2", "node3"}));
  EXPECT_EQ(first["ranks"], Json{0});
  EXPECT_EQ(first["forward_ms"], 2.);
  EXPECT_EQ(first["backward_ms"], 3.);
  EXPECT_EQ(first["compute_ms"], 5.);
  EXPECT_EQ(first["boundary_bytes"], 3 * mib);
  EXPECT_EQ(first["memory_bytes"], 3 * mib + 2 * 3 * mib)
      << "3 x weights, and the outputs of 2 micro-batches";
}

// What one command finds is what the next one says of it: the same step, the same gap, and the same proof.
TEST_F(PlanProgram, NeighbouringCommandsAgree) {
  ASSERT_EQ(run("plan --profile small.txt --stages 2 --json p.json").code, 0);
  const Json made = Json::parse(read_file(path("p.json")));
  EXPECT_EQ(made["objective"], "makespan");
  EXPECT_EQ(made["proved_optimal"], true);
  const std::string said = printed("plan --profile small.txt --stages 2");
  const std::string proof = said.substr(said.find("Lower bound"), 40);
  EXPECT_THAT(said, HasSubstr("8 micro-batches under 1f1b"));
  EXPECT_THAT(printed("simulate --profile small.txt --stages 2"), HasSubstr(proof));
  const std::string again = printed("simulate --profile small.txt --plan p.json");
  EXPECT_THAT(again, HasSubstr(proof));
  EXPECT_THAT(again, HasSubstr("method antichain"));
  EXPECT_THAT(printed("simulate --profile small.txt --plan p.json --microbatches 4"),
              HasSubstr("Lower bound      none: the plan's file has none for this"));
}

TEST_F(PlanProgram, AnEditedPlanIsByHandAndHasTheSameBound) {
  Json edited = plan("--stages 2");
  const double bound = edited["lower_bound_ms"];
  Json& first = edited["stages"][0]["nodes"];
  edited["stages"][1]["nodes"].push_back(first.back());
  first.erase(first.size() - 1);
  write_file(path("edited.json"), edited.dump());
  const Json priced = plan("--plan edited.json");
  EXPECT_EQ(priced["method"], "by hand");
  EXPECT_EQ(priced["lower_bound_ms"], bound);
  EXPECT_GT(priced["gap"], 0);
  EXPECT_EQ(priced["proved_optimal"], false);
}

TEST_F(PlanProgram, TellsNothingItDoesNotKnow) {
  const std::string text = printed_plan("--stages 2");
  EXPECT_THAT(text, HasSubstr("Plan for small: 2 stages, method antichain\n"));
  EXPECT_THAT(text, HasSubstr("Link free (the profile has none)"));
  EXPECT_THAT(text, HasSubstr("32 micro-batches under 1f1b"));
  EXPECT_THAT(text, HasSubstr("proved optimal"));
  EXPECT_THAT(text, HasSubstr("6 antichains"));
  EXPECT_THAT(text, HasSubstr("261.00 ms, speedup over one device 1.59"));
  const std::string simulated = printed("simulate --profile small.txt --stages 2");
  for (const std::string& each : {text, simulated}) {
    EXPECT_THAT(each, Not(HasSubstr("images/s"))) << "nobody knows how many images a micro-batch has";
    EXPECT_THAT(each, Not(HasSubstr("micro-batches of 0")));
  }
}

TEST_F(PlanProgram, StagesObjectiveAndStep) {
  EXPECT_EQ(plan("")["stages"].size(), 1u) << "one rank";
  EXPECT_EQ(plan("--stages 9 --at-most")["bottleneck_ms"], 4.);
  EXPECT_EQ(plan("--stages 5")["stages"].size(), 5u);
  EXPECT_EQ(plan("--stages 2 --microbatches 4")["step_ms"], 2 + 4 * 8 + 3.);
  const Json step = plan("--stages 2 --objective makespan --microbatches 4");
  EXPECT_EQ(step["objective"], "makespan");
  EXPECT_LE(step["step_ms"], 37.);
  EXPECT_LE(step["lower_bound_ms"], step["step_ms"]);
  EXPECT_GE(step["lower_bound_ms"], 4 * 8.) << "the busiest device has 8 ms for each";
  EXPECT_EQ(plan("--stages 2 --method uniform")["method"], "uniform");
  EXPECT_EQ(plan("--stages 2 --max-states 1")["stages"].size(), 2u) << "a part of the antichains is searched";
}

TEST_F(PlanProgram, LinksAndMemory) {
  // 3 MiB there and back: 2 x (2 tensors x 1 ms + 3 s / 1000).
  const Json slow = plan("--stages 2 --link-bytes-per-s 1048576000 --link-latency-s 0.001 --method uniform");
  EXPECT_NEAR(slow["bottleneck_ms"], 10, 1e-6);  // printed with fewer digits
  EXPECT_EQ(plan("--stages 2 --objective compute --link-bytes-per-s 1 --method uniform")["bottleneck_ms"],
            8.);
  EXPECT_THAT(printed_plan("--stages 2 --link-bytes-per-s 2e9"),
              HasSubstr("Link 2 GB/s, latency 0 us (bandwidth as given; else the profile has none)"));
  const Json tight = plan("--stages 2 --memory-bytes 30000000");  // the fastest plan takes 33 MiB
  EXPECT_EQ(tight["bottleneck_ms"], 9.);
  for (const Json& stage : tight["stages"]) EXPECT_LE(stage["memory_bytes"], 30000000);
  EXPECT_EQ(plan("--stages 2 --memory-bytes 0")["bottleneck_ms"], 8.);
  EXPECT_EQ(plan("--stages 2 --method uniform --schedule gpipe")["stages"][0]["memory_bytes"],
            (3 + 32 * 3) * mib);
}

TEST_F(PlanProgram, ClustersWithDifferentDevices) {
  // The larger part, 9 ms, on the device of speed 2.
  const Json json = plan("--cluster cluster.json --link-bytes-per-s 0 --link-latency-s 0");
  EXPECT_EQ(json["bottleneck_ms"], 4.5);
  EXPECT_EQ(json["stages"][0]["devices"], Json{1});
  EXPECT_EQ(json["stages"][1]["devices"], Json{0});
  EXPECT_EQ(json["stages"][0]["ranks"], Json{0});
  const std::string text = printed_plan("--cluster cluster.json");
  EXPECT_THAT(text, HasSubstr("within a node 20 GB/s, latency 3 us; between nodes 1 GB/s, latency 20 us (of "
                              "cluster.json)"));
  EXPECT_THAT(text, HasSubstr("device"));
  EXPECT_THAT(text, HasSubstr("speedup over the fastest device"));
  EXPECT_EQ(plan("--cluster cluster.json --stages 1")["stages"][0]["devices"], Json{1}) << "the fastest";
  // The file's plan has devices; without the cluster there is only one kind.
  write_file(path("placed.json"), json.dump());
  EXPECT_EQ(
      plan("--plan placed.json --cluster cluster.json --link-bytes-per-s 0 --link-latency-s 0")["step_ms"],
      json["step_ms"]);
  EXPECT_GT(json_of("simulate --profile small.txt --cluster cluster.json")["step_s"], 0);
}

TEST_F(PlanProgram, Replicas) {
  const Json given = plan("--replicas 2,1");
  EXPECT_EQ(given["stages"][0]["ranks"], (Json{0, 1}));
  EXPECT_EQ(given["stages"][1]["ranks"], Json{2});
  EXPECT_EQ(given["bottleneck_ms"], 4.5);
  EXPECT_EQ(plan("--local 3")["stages"].size(), 3u) << "as many as there are ranks";
  const Json automatic = plan("--stages 3 --replicas auto");
  EXPECT_LE(automatic["bottleneck_ms"], 4.334) << "a third of all, rounded up to a ns";
  EXPECT_LE(automatic["bottleneck_ms"], plan("--stages 3 --method data-parallel")["bottleneck_ms"]);
  EXPECT_THAT(printed_plan("--replicas 2,1"), HasSubstr("0-1"));

  const ProgramRun drawn =
      run("simulate --profile small.txt --replicas 2,1 --microbatches 4 --link-bytes-per-s 1e7");
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("rank 2 |"));
  EXPECT_THAT(drawn.out, HasSubstr("===")) << "an all-reduce";
  // A plan with replicas comes back from its file, with the same step.
  ASSERT_EQ(run("plan --profile small.txt --replicas 2,1 --microbatches 6 --json r.json").code, 0);
  const Json r = Json::parse(read_file(path("r.json")));
  const Json again = json_of("simulate --profile small.txt --plan r.json --microbatches 6");
  EXPECT_NEAR(again["step_s"], double(r["step_ms"]) * 1e-3, 1e-9);  // the plan's file has fewer digits
  EXPECT_EQ(again["ranks"], 3);
}

TEST_F(PlanProgram, CutsByHand) {
  EXPECT_EQ(plan("--method handsplit --cuts node2,node4")["stages"][1]["nodes"], (Json{"node3", "node4"}));
  EXPECT_EQ(plan("--method handsplit --cuts my.cuts --stages 3")["stages"][1]["nodes"],
            (Json{"node3", "node4"}));
  EXPECT_EQ(plan("--method handsplit --cuts my.cuts --stages 2")["stages"][1]["nodes"],
            (Json{"node5", "node6"}));
}

TEST_F(PlanProgram, Drawings) {
  ASSERT_EQ(run("plan --profile small.txt --stages 2 --dot plan.dot --dot-antichains states.dot").code, 0);
  EXPECT_THAT(read_file(path("plan.dot")), ::testing::StartsWith("digraph"));
  EXPECT_THAT(read_file(path("plan.dot")), HasSubstr("node4"));
  EXPECT_THAT(read_file(path("states.dot")), ::testing::StartsWith("digraph"));
  EXPECT_NE(read_file(path("states.dot")), read_file(path("plan.dot")));
}

TEST_F(PlanProgram, ComparesEveryMethodInOneTable) {
  ::setenv("COLUMNS", "200", 1);  // for rows in one part
  const std::string text = printed_plan("--stages 2 --compare --json c.json");
  for (const char* method :
       {"antichain", "cudasize", "hashrate", "uniform", "block", "pipedream", "data-parallel"}) {
    const std::vector<std::string> cells = row(text, method);
    ASSERT_EQ(cells.size(), 10u) << method;
    for (size_t c = 2; c < cells.size(); ++c) EXPECT_GE(std::stod(cells[c]), 0) << method << " " << cells[c];
  }
  // stages, (planning), slowest, max/mean, boundary, memory, step, speedup, gap
  std::vector<std::string> best = row(text, "antichain");
  best.erase(best.begin() + 2);
  EXPECT_EQ(best, (std::vector<std::string>{"antichain", "2", "8.00", "1.23", "3.00", "19.50", "261.0",
                                            "1.59", "0.00"}));
  EXPECT_THAT(text, HasSubstr("* antichain"));
  EXPECT_EQ(row(text, "cudasize")[3], "9.00") << "17 MiB on the fullest device";
  EXPECT_EQ(row(text, "cudasize")[9], "12.50") << "9 above 8 ms";
  EXPECT_EQ(row(text, "data-parallel")[1], "1x2");
  EXPECT_EQ(row(text, "data-parallel")[7], "208.0") << "16 x 13 ms";
  EXPECT_EQ(Json::parse(read_file(path("c.json")))["method"], "antichain");
  ::unsetenv("COLUMNS");
}

TEST_F(PlanProgram, ComparisonsGoOnWithoutAMethodThatRefuses) {
  std::string text = printed_plan("--stages 2 --compare");
  EXPECT_THAT(text, HasSubstr("handsplit      no plan: no cuts are shipped for small\n"));
  text = printed_plan("--stages 2 --compare --cuts node4 --method handsplit --json h.json");
  EXPECT_EQ(row(text, "handsplit")[3], "9.00");
  EXPECT_EQ(Json::parse(read_file(path("h.json")))["method"], "handsplit");
  text = printed_plan("--stages 2 --compare --memory-bytes 30000000");
  EXPECT_EQ(row(text, "antichain")[3], "9.00");
  EXPECT_THAT(text, HasSubstr("uniform        no plan: stage 1"));
  EXPECT_THAT(text, HasSubstr("data-parallel  no plan: stage 0"));
  const ProgramRun wanted =
      run("plan --profile small.txt --stages 2 --compare --method handsplit --json x.json");
  EXPECT_EQ(wanted.code, 2) << "a file was asked for that no plan can fill";
  EXPECT_THAT(wanted.err, HasSubstr("no cuts are shipped for small"));
  EXPECT_FALSE(std::filesystem::exists(path("x.json")));
  refused("plan --profile small.txt --stages 2 --compare --memory-bytes 1000", 3, "the smallest that");
  refused("plan --profile small.txt --stages 40 --compare", 2, "only 5 nodes");
  refused("plan --profile small.txt --stages 2 --compare --method uniform", 2, "leave out --method");

  const std::string replicated = printed_plan("--stages 3 --compare --replicas auto");
  EXPECT_THAT(replicated, Not(HasSubstr("not ranked")));
  EXPECT_EQ(row(replicated, "uniform")[1], "3") << "one device a stage";
  EXPECT_EQ(row(replicated, "antichain")[3], "4.33");
}

TEST_F(PlanProgram, EveryOptionCanStandInAFile) {
  write_file(
      path("all.toml"),
      "[plan]\nprofile = \"small.txt\"\nstages = 3\nat-most = true\nmethod = \"handsplit\"\nobjective = "
      "\"compute\"\nreplicas = \"off\"\ncuts = \"node3\"\nlink-bytes-per-s = 1e9\nlink-latency-s = "
      "1e-6\nmemory-bytes = 90000000\ncluster = \"cluster.json\"\nmicrobatches = 5\nschedule = "
      "\"gpipe\"\nmax-states = 100\njson = \"toml.json\"\ndot = \"toml.dot\"\ndot-antichains = "
      "\"toml-states.dot\"\n");
  const ProgramRun result = run("plan --config all.toml --stages 2");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Objective compute, 5 micro-batches under gpipe"));
  const Json json = Json::parse(read_file(path("toml.json")));
  EXPECT_EQ(json["method"], "handsplit");
  EXPECT_EQ(json["objective"], "compute");
  EXPECT_EQ(json["stages"].size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(path("toml.dot")) && std::filesystem::exists(path("toml-states.dot")));
}

TEST_F(PlanProgram, OptionsTakeUnitsAndTheLastOfTwoValues) {
  const ProgramRun result =
      run("plan --profile small.txt --stages 3 --stages 2 --memory-bytes 64GiB --link-bytes-per-s 12GB/s "
          "--link-latency-s 20us");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 stages"));
  EXPECT_THAT(result.out, HasSubstr("Link 12 GB/s, latency 20 us (as given)"));
}

TEST_F(PlanProgram, RefusesWhatMakesNoSense) {
  const std::string with = "plan --profile small.txt --stages 2 ";
  refused(with + "--method antichian", 2, "did you mean 'antichain'");
  refused(with + "--objective makespam", 2, "did you mean 'makespan'");
  refused(with + "--replicas some", 2, "--replicas takes off, auto, or a count for every stage");
  refused(with + "--replicas 1,1,1", 2, "replicas are given for 3 stages");
  refused(with + "--replicas auto --method uniform", 2, "turn replicas off");
  refused(with + "--cuts node4", 2, "--cuts are for the method handsplit");
  refused(with + "--method handsplit --cuts node9", 2, "no node \"node9\"");
  refused(with + "--method handsplit --cuts node4,", 2, "--cuts takes node names");
  refused(with + "--method handsplit", 2, "no cuts are shipped for small");
  refused("plan --profile small.txt --method handsplit --cuts my.cuts --stages 4", 2, "4 stages");
  refused(with + "--schedule s.txt", 2, "s.txt is a schedule of one plan");
  refused(with + "--schedule 1f2b", 2, "did you mean '1f1b'");
  refused(with + "--max-states 0", 2, "--max-states takes a whole number");
  for (const std::string searchless : {"--objective compute", "--schedule interleaved"}) {
    const std::string uniform = with + searchless + " --method uniform --max-states 7";
    refused(uniform, 2, "the method uniform makes none here");
    if (searchless.starts_with("--objective")) printed(uniform + " --dot-antichains a.dot --max-states 70");
  }
  printed(with + "--method uniform --max-states 7");  // for its bound
  refused(with + "--memory-bytes -1", 2, "--memory-bytes takes a size");
  refused(with + "--memory-bytes 1000000", 3, "the smallest that");
  refused(with + "--method uniform --memory-bytes 10000000", 3, "stage 1");
  refused(with + "--link-bytes-per-s nan", 2, "--link-bytes-per-s takes bytes a second");
  refused(with + "--microbatches 0", 2, "--microbatches takes a whole number");
  refused(with + "--compare --plan p.json", 2, "--compare makes a plan by every method");
  refused(with + "--model resnet18", 2, "--profile excludes --model");
  refused(with + "--precision bf16", 2, "--profile excludes --precision");
  for (const std::string searched : {"--method uniform", "--replicas auto", "--max-states 7", "--cuts node4"})
    refused(with + "--plan p.json " + searched, 2, "--plan excludes --");
  refused("simulate --profile small.txt --stages 2 --schedule s.txt --html s.txt", 2,
          "--html would replace s.txt, which --schedule reads");
  refused(with + "--method handsplit --cuts my.cuts --dot my.cuts", 2, "which --cuts reads");
  refused("plan --profile small.txt --stages 6", 2, "only 5 nodes");
  refused("plan --profile small.txt --cluster cluster.json --stages 3", 2, "the cluster has only 2");
  refused(with + "--dot-antichains a.dot --max-states 3", 3, "--max-states");
  refused("simulate --profile small.txt", 2, "simulate needs a plan");
  refused("simulate --profile small.txt --stages 2 --cuts node4", 2, "--cuts are for the method handsplit");
}

TEST_F(PlanProgram, RefusesFilesThatCantBeUsed) {
  write_file(path("cut.txt"), std::string(graph_txt).substr(0, 300));
  write_file(path("bad.json"), R"({"format": "antichain cluster 1", "nodes": []})");
  write_file(path("none.cuts"), "# nothing\n");
  write_file(path("bad.cuts"), "2: node4 node5\n");
  const std::string with = "plan --profile small.txt --stages 2 ";
  refused("plan --profile cut.txt", 3, "cut.txt:3");
  refused("plan --profile nowhere.txt", 3, "nowhere.txt");
  refused(with + "--cluster bad.json", 3, "bad.json");
  refused(with + "--cluster nowhere.json", 3, "nowhere.json");
  refused(with + "--method handsplit --cuts none.cuts", 3, "none.cuts has no cuts");
  refused(with + "--method handsplit --cuts bad.cuts", 3, "bad.cuts:1");
  for (const std::string option : {"--json", "--dot", "--dot-antichains"}) {
    refused(with + option + " no/x", 3, "there is no folder no");
    refused(with + option + " .", 3, "it is a folder");
  }
}

TEST_F(PlanProgram, TrainingNeedsOperatorsAndAMicrobatchForEveryReplica) {
  refused("train --profile small.txt", 3, "can be planned and simulated, not run");
  refused("train --local 3 --replicas 3 --batch 4 --microbatches 2", 2,
          "--replicas 3 gives a stage 3 replicas, but the step has 2 micro-batches");
}

TEST_F(PlanProgram, TablesFitAHundredColumns) {
  for (const std::string words :
       {"--stages 3 --compare --link-bytes-per-s 1e6",
        "--cluster cluster.json --compare --memory-bytes 900000000", "--stages 3 --replicas auto --compare",
        "--cluster cluster.json", "--stages 5 --memory-bytes 900000000"}) {
    std::istringstream lines(printed_plan(words));
    for (std::string line; std::getline(lines, line);) {
      const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(characters, 100) << words << ": " << line;
    }
  }
}

TEST_F(PlanProgram, TheOrderOfLinesMeansNothing) {
  std::vector<std::string> lines;
  std::istringstream in(graph_txt);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string reversed;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) reversed += *line + "\n";
  std::filesystem::create_directory(path("again"));
  write_file(path("again/small.txt"), reversed);
  Json one = plan("--stages 3"), other = json_of(by_hand("plan --profile again/small.txt --stages 3"));
  one.erase("planning_ms");
  other.erase("planning_ms");
  EXPECT_EQ(one, other);
}

}  // namespace
}  // namespace antichain
