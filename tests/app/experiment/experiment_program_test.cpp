// These tests run rehearsals and experiments as a user does, on networks of a few nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "framework/json.h"
#include "tests/app/program.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// A chain of six nodes after an input; forward and backward of node i take i ms and 2 i ms, activations have
// 1 MiB.
std::string chain_txt() {
  std::string text =
      "node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, "
      "activation_size=1048576.000, "
      "parameter_size=0.000\n";
  for (int i = 2; i <= 7; ++i) {
    const std::string ms = std::to_string(i);
    text += "node" + ms +
            " -- Linear(in_features=8, out_features=8, bias=True) -- forward_compute_time=" + ms +
            ".000, backward_compute_time=" + std::to_string(2 * i) +
            ".000, activation_size=1048576.000, parameter_size=4194304.000\n";
  }
  for (int i = 1; i <= 6; ++i)
    text += "\tnode" + std::to_string(i) + " -- node" + std::to_string(i + 1) + "\n";
  return text;
}

class ExperimentProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.path() / "profiles");
    write_file(path("profiles/one.txt"), chain_txt());
    write_file(path("profiles/two.txt"), chain_txt());
    if (const char* published = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES")) published_ = published;
    ::unsetenv("ANTICHAIN_PIPEDREAM_PROFILES");  // the program would take it
  }
  void TearDown() override {
    if (!published_.empty()) ::setenv("ANTICHAIN_PIPEDREAM_PROFILES", published_.c_str(), 1);
  }
  std::string path(const std::string& name) const { return folder_.str() + "/" + name; }
  ProgramRun run(const std::string& words) const { return run_program(folder_.str(), words); }
  nlohmann::json json(const std::string& name) const { return parse_json(read_file(path(name)), name); }

  TemporaryFolder folder_;
  std::string published_;
};

TEST_F(ExperimentProgram, RehearsesOnAsManyThreadsAsThePlanHasRanks) {
  const ProgramRun result =
      run("rehearse --profile profiles/one.txt --stages 3 --microbatches 4 --steps 2 --json r.json --trace "
          "t.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("REHEARSED on 3 ranks"));
  EXPECT_THAT(result.out, HasSubstr("predicted  rehearsed"));
  const nlohmann::json r = json("r.json");
  EXPECT_EQ(r["mode"], "rehearsed");
  EXPECT_EQ(r["ranks"], 3);
  EXPECT_EQ(r["rehearsed_steps_s"].size(), 2u);
  EXPECT_GE(r["rehearsed_step_s"].get<double>(), r["predicted_step_s"].get<double>() - 1e-6)
      << "waits end late, never early";
  EXPECT_THAT(read_file(path("t.json")), HasSubstr("rehearsed: one"));
}

TEST_F(ExperimentProgram, TrainOnARehearsedDeviceIsARehearsal) {
  const ProgramRun result = run("train --device rehearse:profiles/one.txt --local 2 --microbatches 4");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("REHEARSED on 2 ranks"));
  const std::string same = "train --device rehearse:profiles/one.txt --local 2 --microbatches 4 ";
  EXPECT_EQ(run(same + "--json kept.json").code, 0);
  EXPECT_EQ(json("kept.json")["mode"], "rehearsed");
  for (const std::string option : {"--results", "--metrics", "--checkpoint", "--resume"})
    expect_refused(run(same + option + " x"), 2, option + " x is given, but a rehearsal trains nothing", "");
  expect_refused(run(same + "--trace profiles/one.txt"), 2, "--trace would replace profiles/one.txt", "");
  expect_refused(run("train --device rehearse: --local 2"), 2, "names no profile", "");
  expect_refused(run("train --device rehearsal --local 2"), 2, "there is no device 'rehearsal'", "");
}

TEST_F(ExperimentProgram, RehearsalsNeedTheirRanks) {
  ASSERT_EQ(run("plan --profile profiles/one.txt --stages 2 --json plan.json").code, 0);
  expect_refused(run("rehearse --profile profiles/one.txt --plan plan.json --local 3"), 2,
                 "for 2 ranks, but 3", "");
}

TEST_F(ExperimentProgram, RehearsesUnderMpi) {
  const ProgramRun result = run_under_mpi(
      folder_.str(), 3, "rehearse --profile profiles/one.txt --microbatches 4 --payload true --json r.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("REHEARSED on 3 ranks"));
  EXPECT_EQ(json("r.json")["payload"], "true");
}

TEST_F(ExperimentProgram, ARankThatHangsInARehearsalIsNamed) {
  ::setenv("ANTICHAIN_FAULT", "hang:rank=1:step=1", 1);
  const ProgramRun result =
      run("rehearse --profile profiles/one.txt --stages 3 --microbatches 4 --watchdog 1");
  ::unsetenv("ANTICHAIN_FAULT");
  EXPECT_EQ(result.code, 75) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1"));
}

TEST_F(ExperimentProgram, Table1) {
  const ProgramRun result =
      run("experiment table1 --profiles profiles --models one,two --devices 2,3 --out t1");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("The publication has no row for these models"));
  const nlohmann::json rows = json("t1/table1.json")["rows"];
  ASSERT_EQ(rows.size(), 4u);
  // Forward and backward of node2 to node7 are 6, 9, … 21 ms; the best of three stages are 6+9+12, 15+18, 21.
  EXPECT_NEAR(rows[1]["antichain"]["slowest_stage_s"].get<double>(), 0.033, 1e-9);
  EXPECT_GT(rows[1]["cudasize"]["slowest_stage_s"].get<double>(), 0.033);
  EXPECT_FALSE(rows[1].contains("handsplit")) << "nobody has cut it by hand";
  EXPECT_THAT(read_file(path("t1/report.md")), HasSubstr("| two | 3 |"));
  EXPECT_THAT(read_file(path("t1/report.html")), HasSubstr("<td>two</td><td>3</td>"));
}

constexpr const char* simulated =
    "experiment speedup --profiles profiles --models one,two --ranks 1,2,3 --methods "
    "antichain,cudasize,antichain+replicas,data-parallel,handsplit --microbatches 6 --out study";

TEST_F(ExperimentProgram, ASimulatedStudyHasAReport) {
  const ProgramRun result = run(simulated);
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json cell = json("study/cells/one-antichain-3-simulate.json");
  EXPECT_EQ(cell["mode"], "simulated");
  EXPECT_EQ(cell["predicted"]["busy_s"].size(), 3u);
  EXPECT_EQ(json("study/cells/one-data-parallel-3-simulate.json")["stages"], "1x3");
  EXPECT_TRUE(json("study/cells/one-handsplit-3-simulate.json").contains("refusal"));
  const std::string report = read_file(path("study/report.md"));
  for (const char* part : {"All times here are simulated", "## Speedup on 3 ranks", "## two",
                           "two by handsplit on 3: ", "revision"})
    EXPECT_THAT(report, HasSubstr(part));
  EXPECT_THAT(report, Not(HasSubstr("publication"))) << "it has nothing for 1, 2 or 3 devices";
  EXPECT_THAT(report, HasSubstr("| any | 1 |")) << "one rank does the same by every method";
  EXPECT_THAT(report, Not(HasSubstr("| antichain | 1 |")));
  EXPECT_THAT(json("study/experiment.json")["command"].dump(), HasSubstr("speedup"));
}

TEST_F(ExperimentProgram, AScheduleMayHaveSeveralStagesARank) {
  const std::string study =
      "experiment speedup --profiles profiles --models one --ranks 1,2 --methods antichain,uniform "
      "--microbatches 6 --schedule ";
  const ProgramRun result = run(study + "zb-v --out v");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(json("v/cells/one-antichain-2-simulate.json")["stages"], "4");
  EXPECT_EQ(json("v/cells/one-uniform-1-simulate.json")["stages"], "2");
  expect_refused(run(study + "zb-v --chunks 3 --out w"), 2, "zb-v has 2 stages a rank", study);
}

// An order is searched once. The rehearsal is of the file that was written with the plan.
TEST_F(ExperimentProgram, APlannedOrderIsRehearsedAsItWasFound) {
  const ProgramRun result = run(
      "experiment speedup --profiles profiles --models one --ranks 2 --methods antichain --microbatches 4 "
      "--schedule auto --in-flight 3 --mode rehearse --steps 1 --time-scale 1 --out planned");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(read_file(path("planned/plans/one-antichain-2-rehearse.schedule")),
              HasSubstr("microbatches 4"));
  EXPECT_TRUE(json("planned/cells/one-antichain-2-rehearse.json").contains("rehearsed"));
}

TEST_F(ExperimentProgram, FinishedCellsAreKept) {
  ASSERT_EQ(run(simulated).code, 0);
  const std::string kept = path("study/cells/one-antichain-3-simulate.json"),
                    gone = path("study/cells/two-cudasize-2-simulate.json");
  std::string marked = read_file(kept);
  marked.replace(marked.find("\"imbalance\": "), 13, "\"imbalance\": 7");  // so that it is known again
  write_file(kept, marked);
  fs::remove(gone);
  const ProgramRun again = run(simulated);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_file(kept), marked);
  EXPECT_TRUE(fs::exists(gone));
  EXPECT_THAT(again.out, HasSubstr("two on 2 by cudasize"));
  EXPECT_THAT(again.out, Not(HasSubstr("one on 3 by antichain:")));
  expect_refused(run(std::string(simulated) + " --objective compute"), 2, "objective was \"makespan\"", "");
  write_file(kept, marked.substr(0, 40));
  expect_refused(run(simulated), 3, "one-antichain-3-simulate.json", "a damaged cell is no result");
}

TEST_F(ExperimentProgram, WithoutPlottersTheReportHasTablesAndSaysSo) {
  const std::string before = std::getenv("PATH");
  fs::create_directories(folder_.path() / "bin");
  for (const char* tool : {"timeout", "sh"})
    for (const char* where : {"/usr/bin/", "/bin/"})
      if (fs::exists(where + std::string(tool)) && !fs::exists(path("bin/") + tool))
        fs::create_symlink(where + std::string(tool), path("bin/") + tool);
  ::setenv("PATH", path("bin").c_str(), 1);
  const ProgramRun result = run(simulated);
  ::setenv("PATH", before.c_str(), 1);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("No plots: gnuplot is not installed"));
  const std::string report = read_file(path("study/report.md"));
  EXPECT_THAT(report, HasSubstr("No graphs of models: Graphviz is not installed"));
  EXPECT_THAT(report, Not(HasSubstr("![")));
}

TEST_F(ExperimentProgram, EveryPictureOfTheReportIsThere) {
  if (std::system("command -v gnuplot >/dev/null && command -v dot >/dev/null") != 0)
    GTEST_SKIP() << "gnuplot and Graphviz are not both installed";
  ASSERT_EQ(run(simulated).code, 0);
  const std::string report = read_file(path("study/report.md"));
  int pictures = 0;
  for (size_t at = 0; (at = report.find("](figures/", at)) != std::string::npos; ++at, ++pictures) {
    const std::string file = report.substr(at + 2, report.find(')', at) - at - 2);
    const std::string svg = read_file(path("study/" + file));
    EXPECT_THAT(svg, HasSubstr("</svg>")) << file;
    EXPECT_GT(svg.size(), 1000u) << file;
  }
  EXPECT_EQ(pictures, 2 + 2 * 4);
  const std::string lines = read_file(path("study/figures/speedup-one.svg"));
  for (const char* label :
       {"speedup over one rank", "ranks", "antichain+replicas", "data-parallel", "simulated"})
    EXPECT_THAT(lines, HasSubstr(label));
}

constexpr const char* rehearsed =
    "experiment speedup --profiles profiles --models one,two --ranks 2,3 --methods antichain,cudasize "
    "--microbatches "
    "4 --mode rehearse --steps 1 --out study";

// Starts the program and does not wait.
pid_t start(const std::string& folder, const std::string& words) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::chdir(folder.c_str()) != 0) ::_exit(1);
    const std::string command =
        std::string("exec '") + ANTICHAIN_PROGRAM + "' " + words + " >out.txt 2>err.txt";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(1);
  }
  return pid;
}

int cells_in(const std::string& folder) {
  std::error_code ignored;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    count += entry.path().extension() == ".json";
  return count;
}

TEST_F(ExperimentProgram, AnInterruptedSweepGoesOn) {
  int at_least = 0;
  for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
    const pid_t pid = start(folder_.str(), rehearsed);
    for (int i = 0; i < 2400 && cells_in(path("study/cells")) <= at_least; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::kill(pid, signal);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (signal == SIGKILL)
      EXPECT_TRUE(WIFSIGNALED(status));
    else
      EXPECT_EQ(WEXITSTATUS(status), 85) << read_file(path("err.txt"));
    const int done = cells_in(path("study/cells"));
    EXPECT_GT(done, at_least);
    EXPECT_LT(done, 8) << "nothing was interrupted";
    at_least = done;
  }
  const ProgramRun last = run(rehearsed);
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(cells_in(path("study/cells")), 8);
  EXPECT_THAT(read_file(path("study/report.md")), HasSubstr("All times here are rehearsed"));
  EXPECT_EQ(json("study/cells/two-cudasize-3-rehearse.json")["mode"], "rehearsed");
}

// Real training: measured beside predicted, the same losses wherever it is cut, and the step as it was.
TEST_F(ExperimentProgram, AMeasuredStudyTrains) {
  const ProgramRun result = run_behind(
      folder_.str(), "env CLICOLOR_FORCE=1",
      "experiment speedup --mode measure --models resnet20 --ranks 1,2 --methods antichain,uniform "
      "--microbatch 4 --microbatches 2 --train-steps 3 --dataset synthetic --out study");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(read_file(path("study/report.md")),
              HasSubstr("| predicted step, ms | rehearsed step, ms | measured step, ms | difference, % |"));
  EXPECT_THAT(read_file(path("study/logs/resnet20-antichain-1-measure.log")), Not(HasSubstr("\x1b")))
      << "colours are for terminals";
  const nlohmann::json alone = json("study/cells/resnet20-antichain-1-measure.json");
  for (const char* cell : {"antichain-2", "uniform-2", "uniform-1"})
    EXPECT_EQ(json(std::string("study/cells/resnet20-") + cell + "-measure.json")["measured"]["loss"],
              alone["measured"]["loss"])
        << cell;
  EXPECT_EQ(alone["measured"]["loss"].size(), 3u);
  EXPECT_GE(alone["rehearsed"]["step_s"].get<double>(), alone["predicted"]["step_s"].get<double>() - 1e-6);
  if (std::system("command -v gnuplot >/dev/null") != 0) return;
  const std::string timeline = read_file(path("study/figures/timeline-resnet20.svg"));
  EXPECT_THAT(timeline, HasSubstr("on 2 ranks by antichain, measured"));
  EXPECT_THAT(timeline, HasSubstr("backward"));
}

// A rank is killed in one rehearsal: that cell fails, the others are done, and the same command does the
// rest.
TEST_F(ExperimentProgram, AKilledRankCostsOneCell) {
  ::setenv("ANTICHAIN_FAULT", "exit:rank=2:step=1", 1);  // only the cells of 3 ranks have a rank 2
  const ProgramRun result = run(rehearsed);
  ::unsetenv("ANTICHAIN_FAULT");
  EXPECT_EQ(result.code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("4 cells failed"));
  EXPECT_EQ(cells_in(path("study/cells")), 4);
  EXPECT_THAT(read_file(path("study/report.md")), HasSubstr("Failed: one-antichain-3-rehearse"));
  const ProgramRun again = run(rehearsed);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(cells_in(path("study/cells")), 8);
}

// These are the figures that the published profiles must give, with 32 micro-batches and free links.
TEST_F(ExperimentProgram, StraightPipelinesOfThePublishedProfiles) {
  if (published_.empty())
    GTEST_SKIP() << "set ANTICHAIN_PIPEDREAM_PROFILES to a folder with resnet101.txt and so on";
  const ProgramRun result = run(
      std::string(
          "experiment speedup --models resnet101,densenet121,vgg16,alexnet --ranks 4,8 --methods antichain "
          "--microbatches 32 --link-bytes-per-s 0 --link-latency-s 0 --out study --profiles ") +
      published_);
  ASSERT_EQ(result.code, 0) << result.err;
  const auto speedup = [&](const std::string& model, int ranks) {
    const nlohmann::json cell =
        json("study/cells/" + model + "-antichain-" + std::to_string(ranks) + "-simulate.json");
    return cell["one_device_s"].get<double>() / cell["predicted"]["step_s"].get<double>();
  };
  EXPECT_GE(speedup("resnet101", 4), 3.6);
  EXPECT_GE(speedup("resnet101", 8), 6.4);
  EXPECT_GE(speedup("densenet121", 4), 3.6);
  EXPECT_GE(speedup("densenet121", 8), 6.4);
  EXPECT_GE(speedup("vgg16", 4), 2.9);
  EXPECT_GE(speedup("vgg16", 8), 4.0);
  EXPECT_GE(speedup("alexnet", 4), 2.8);
  EXPECT_GE(speedup("alexnet", 8), 2.9);
}

}  // namespace
}  // namespace antichain
