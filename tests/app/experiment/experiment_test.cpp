// These tests are about the parts of an experiment: cells as files, lists on the command line, profiles of a
// folder, a results folder that refuses what does not belong to it, reports in both forms, and child
// processes that end in every way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "app/cli/child_process.h"
#include "app/experiment/experiment_cell.h"
#include "app/experiment/experiment_networks.h"
#include "app/experiment/experiment_report.h"
#include "app/experiment/published_table1.h"
#include "app/experiment/report_document.h"
#include "app/experiment/table1_report.h"
#include "app/job/experiment_record.h"
#include "app/report/timeline_figure.h"
#include "framework/json.h"
#include "layers/cpu/backend.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Cell full_cell() {
  return {.key = {"resnet101", "antichain+replicas", 8, StudyMode::measure},
          .microbatch = 16,
          .microbatches = 32,
          .plan_hash = "0123456789abcdef",
          .stages = "3+5x1",
          .planning_s = 0.1 + 0.2,
          .one_device_s = 1.5,
          .slowest_s = 0.25,
          .imbalance = 1.01,
          .time_scale = 2.5,
          .boundary_bytes = 123456789012,
          .memory_bytes = 5,
          .predicted = {1. / 3, -0.25, {0.1, 0.2, 0.3}},
          .rehearsed = StepFigures{2. / 3, 0.5, {}},
          .measured = TrainedFigures{.step_s = 0.7,
                                     .steps = 1000,
                                     .data = "CIFAR-10",
                                     .test_accuracy = 0.755,
                                     .loss = {{1, 2.3}, {11, 1.7}},
                                     .starved_share = 0.1}};
}

TEST(ExperimentCell, TheFileHoldsEverything) {
  const Cell cell = full_cell();
  const std::string text = to_json(cell);
  const Cell read = cell_from_json(text, "cell.json");
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.key.name(), "resnet101-antichain+replicas-8-measure");
  EXPECT_EQ(read.planning_s, cell.planning_s) << "all digits";
  EXPECT_EQ(read.measured->loss, cell.measured->loss);
  EXPECT_EQ(read.step_s(), 0.7);
}

TEST(ExperimentCell, MeasuredSpeedupsAreOverAMeasuredRank) {
  Cell one = full_cell(), eight = full_cell();
  one.key.ranks = 1;
  one.measured->step_s = 2.1;
  EXPECT_DOUBLE_EQ(speedup({one, eight}, eight), 2.1 / 0.7);
  EXPECT_DOUBLE_EQ(speedup({eight}, eight), 1.5 / 0.7) << "else over the predicted one";
  eight.measured.reset();
  EXPECT_DOUBLE_EQ(speedup({one, eight}, eight), 1.5 / (2. / 3)) << "never mixed";
}

TEST(ExperimentCell, OneWithoutItsCoreIsDoubtful) {
  Cell cell = full_cell();
  EXPECT_FALSE(starved(cell));
  EXPECT_EQ(starved_cells({cell, cell}), "");
  cell.measured->starved_share = 0.5;
  EXPECT_TRUE(starved(cell_from_json(to_json(cell), "cell.json")));
  EXPECT_THAT(starved_cells({full_cell(), cell}), HasSubstr("In 1 of 2 cells"));
  std::string older = to_json(full_cell());
  older.erase(older.find("    \"starved_share\""),
              older.find("    \"loss\"") - older.find("    \"starved_share\""));
  EXPECT_EQ(cell_from_json(older, "cell.json").measured->starved_share, 0);
}

TEST(ExperimentCell, ARefusalIsAResult) {
  const Cell cell{.key = {"alexnet", "handsplit", 8, StudyMode::simulate}, .refusal = "no \"cuts\" for 8"};
  const Cell read = cell_from_json(to_json(cell), "cell.json");
  EXPECT_EQ(read.refusal, cell.refusal);
  EXPECT_EQ(read.key.name(), cell.key.name());
}

TEST(ExperimentCell, ADamagedFileIsNamed) {
  const std::string text = to_json(full_cell());
  expect_error([&] { cell_from_json(text.substr(0, text.size() / 2), "a/cell.json"); }, {"a/cell.json"});
  expect_error([&] { cell_from_json("{}", "a/cell.json"); }, {"a/cell.json", "format"});
  std::string other = text;
  other.replace(other.find("\"measured\""), 10, "\"guessed\" ");
  expect_error([&] { cell_from_json(other, "a/cell.json"); }, {"a/cell.json"});
}

TEST(ExperimentCell, MethodsAreKnownByName) {
  EXPECT_EQ(study_method("pipedream+replicas").planner, Method::pipedream);
  EXPECT_EQ(study_method("data-parallel").kind, StudyMethod::Kind::data_parallel);
  expect_error([] { study_method("antichian"); }, {"antichian", "did you mean 'antichain'"});
  expect_error([] { study_mode("simulated"); }, {"simulated", "did you mean 'simulate'"});
}

TEST(ExperimentLists, AreWhatTheySay) {
  EXPECT_THAT(parse_list("b,a", "--models", {"a"}), ElementsAre("b", "a"));
  EXPECT_THAT(parse_list("all", "--models", {"x", "y"}), ElementsAre("x", "y"));
  EXPECT_THAT(parse_counts("8,1,4", "--ranks", 8), ElementsAre(8, 1, 4));
  for (const char* bad : {"", "a,", ",a", "a,,b", "a,a"})
    expect_error([&] { parse_list(bad, "--models", {}); }, {"--models", bad});
  for (const char* bad : {"", "0", "9", "4,", "4,4", "x", "4x", "-1", "1e1", "99999999999"})
    expect_error([&] { parse_counts(bad, "--ranks", 8); }, {"--ranks", bad});
  EXPECT_EQ(paper_models().size(), 10u);
}

TEST(ExperimentNetworks, AFolderHasProfilesInThreeForms) {
  const TemporaryFolder folder;
  write_file((folder.str() + "/a.txt"), "x");
  write_file((folder.str() + "/b.json"), "{}");
  const ProfileSource source{.given = (folder.str() + "/")};
  EXPECT_THAT(profile_file(source, "a"), HasSubstr("a.txt"));
  EXPECT_THAT(profile_file(source, "b"), HasSubstr("b.json"));
  expect_error([&] { profile_file(source, "c"); }, {"no profile of c", "c/graph.txt"});
}

TEST(ExperimentNetworks, LaunchersNameTheNumberOfRanks) {
  const std::string me = own_program();
  EXPECT_THAT(launch("mpirun -n {} --tag x{}y", 4, {"train"}),
              ElementsAre("mpirun", "-n", "4", "--tag", "x4y", me, "train"));
  EXPECT_THAT(launch("", 3, {"train"}), ElementsAre(me, "train", "--local", "3"));
}

TEST(ExperimentNetworks, ALauncherIsAProgramAndTakesANumber) {
  check_launcher("");
  check_launcher("sh -c {}");
  check_launcher("/bin/sh -c {}");
  expect_error([] { check_launcher("no-such-program-anywhere -n {}"); },
               {"'no-such-program-anywhere'", "no program"});
  expect_error([] { check_launcher("/bin/no-such-program -n {}"); }, {"'/bin/no-such-program'"});
  expect_error([] { check_launcher("sh -n 2"); }, {"'sh -n 2'", "how many ranks", "{}"});
}

class ResultsFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { register_cpu_backend(); }
  TemporaryFolder folder_;
};

TEST_F(ResultsFolderTest, RecordsWhatItWasMadeWith) {
  const ResultsFolder out((folder_.str() + "/out"), "speedup", {{"seed", 7}}, {"antichain", "experiment"});
  const auto record = parse_json(read_file((folder_.str() + "/out/experiment.json")), "record");
  EXPECT_EQ(record["experiment"], "speedup");
  EXPECT_EQ(record["settings"]["seed"], 7);
  EXPECT_EQ(record["command"][1], "experiment");
  for (const char* field : {"program", "revision", "libraries", "host", "cores"})
    EXPECT_TRUE(record.contains(field));
  EXPECT_THAT(record["libraries"].dump(), HasSubstr("oneDNN"));
  EXPECT_THAT(record["libraries"].dump(), HasSubstr("MPI"));
}

TEST_F(ResultsFolderTest, OneAtATimeAndOneKind) {
  const std::string path = (folder_.str() + "/out");
  const auto open = [&](const std::string& experiment, int seed) {
    return ResultsFolder(path, experiment, {{"seed", seed}}, {});
  };
  {
    const ResultsFolder first = open("speedup", 7);
    expect_error([&] { open("speedup", 7); }, {path, "in use"});
  }
  open("speedup", 9);  // nothing was done yet with the other settings
  open("speedup", 7);
  fs::create_directories(path + "/cells");
  write_file(path + "/cells/one.json", "{}");
  expect_error([&] { open("speedup", 8); }, {"other settings", "seed was 7, and is 8"});
  expect_error([&] { open("table1", 7); }, {"not of an experiment called table1"});
  open("speedup", 7);
}

TEST(ResultsRecord, ACommandCanBeTypedAgain) {
  EXPECT_EQ(shell_words({"antichain", "--launcher", "mpirun -n {}", "", "it's"}),
            "antichain --launcher 'mpirun -n {}' '' 'it'\\''s'");
}

TEST(ReportDocument, TwoFormsOfOneText) {
  ReportDocument report("A < B");
  report.heading("Second");
  report.paragraph("**bold** and `a<b`");
  report.table({"model", "x"}, {{"a|b", "**1**"}, {"c", "2"}});
  report.picture("figures/x.svg", "the \"picture\"");
  EXPECT_EQ(report.markdown(),
            "# A < B\n\n## Second\n\n**bold** and `a<b`\n\n| model | x |\n|---|---:|\n| a\\|b | **1** |\n| c "
            "| 2 |\n\n"
            "![the \"picture\"](figures/x.svg)\n\n");
  const std::string html = report.html();
  for (const char* part :
       {"<title>A &lt; B</title>", "<h2>Second</h2>", "<b>bold</b> and <code>a&lt;b</code>",
        "<th>model</th><th>x</th>", "<td>a|b</td><td><b>1</b></td>",
        "<img src=\"figures/x.svg\" alt=\"the &quot;picture&quot;\""})
    EXPECT_THAT(html, HasSubstr(part));
}

TEST(ChildProcess, EndsAreTold) {
  const TemporaryFolder folder;
  const std::string log = (folder.str() + "/log");
  EXPECT_EQ(run_child({"sh", "-c", "echo out; echo err >&2; exit 7"}, log), 7);
  EXPECT_EQ(read_file(log), "out\nerr\n");
  EXPECT_EQ(last_line(log), "err");
  EXPECT_EQ(run_child({"sh", "-c", "kill -9 $$"}, log), 128 + SIGKILL);
  EXPECT_EQ(run_child({"no-such-program-anywhere"}, log), 127);
  EXPECT_EQ(last_line(log), "");
  EXPECT_TRUE(has_program("sh"));
  EXPECT_FALSE(has_program("no-such-program-anywhere"));
  expect_error([&] { run_child({"true"}, (folder.str() + "/missing/log")); }, {"missing/log"});
}

TEST(ChildProcess, HearsFewSignalsAndNoneOfTheTerminals) {
  const TemporaryFolder folder;
  const std::string log = folder.str() + "/log";
  ASSERT_EQ(run_child({"sh", "-c", "cut -d' ' -f5 /proc/$$/stat; echo $$"}, log), 0);
  const std::string group = read_file(log);
  EXPECT_EQ(group.substr(0, group.find('\n')), group.substr(group.find('\n') + 1, group.find('\n')))
      << "the leader of a group of its own";
  StopSignals stop;
  std::thread later([&] {
    while (read_file(log) != "ready\n") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (int i = 0; i < 4; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      ::kill(::getpid(), SIGINT);
    }
  });
  write_file(log, "");
  run_child(
      {"sh", "-c", "trap 'echo heard' TERM; echo ready; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done"},
      log);
  later.join();
  const std::string heard = read_file(log).substr(std::string("ready\n").size());
  EXPECT_LE(heard.size(), 2 * std::string("heard\n").size()) << heard;
  EXPECT_GE(heard.size(), std::string("heard\n").size());
  expect_error([] { StopSignals::end_if_requested(); }, {"stopped by SIGINT"});
}

// mpirun's own words, about what it was asked to start.
TEST(ChildProcess, LastWordsAreOursBeforeMpiruns) {
  const std::string rule(74, '-'), aborted = rule +
                                             "\nMPI_ABORT was invoked on rank 0\nwith errorcode 3.\n\nNOTE: "
                                             "it kills.\n" +
                                             rule + "\n";
  const TemporaryFolder folder;
  const std::string log = folder.str() + "/log";
  const auto words = [&](const std::string& text) {
    write_file(log, text);
    return last_words(log);
  };
  EXPECT_EQ(words("Plan\n\nantichain: p.json is no plan: plan again\n" + aborted),
            "p.json is no plan: plan again");
  EXPECT_EQ(words("Plan\n" + rule +
                  "\nThere are not enough slots to satisfy the 4\nslots that were requested:\n\n  "
                  "antichain\n\nEither request fewer.\n" +
                  rule + "\n"),
            "There are not enough slots to satisfy the 4 slots that were requested");
  EXPECT_THAT(words(rule +
                    "\nmpirun has detected an attempt to run as root.\n\nRunning as root is *strongly* "
                    "discouraged.\n" +
                    rule + "\n"),
              HasSubstr("set OMPI_ALLOW_RUN_AS_ROOT=1"));
  EXPECT_EQ(words("gnuplot\nline 3: what?\n"), "line 3: what?");
  EXPECT_EQ(words(""), "");
}

TEST(ChildProcess, AStopReachesTheChild) {
  const TemporaryFolder folder;
  StopSignals stop;
  EXPECT_FALSE(StopSignals::requested());
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::kill(::getpid(), SIGINT);
  });
  // A minute, were it not stopped.
  EXPECT_EQ(run_child({"sleep", "60"}, (folder.str() + "/log")), 128 + SIGTERM);
  later.join();
  EXPECT_TRUE(StopSignals::requested());
}

Cell measured_cell(const std::string& method, int ranks, double step_s) {
  Cell cell{.key = {"m", method, ranks, StudyMode::measure}, .one_device_s = 8};
  cell.measured = TrainedFigures{.step_s = step_s};
  return cell;
}

TEST(Speedup, OfAMeasuredStepIsOverAMeasuredOne) {
  const std::vector<Cell> cells = {measured_cell("antichain", 1, 6), measured_cell("antichain", 2, 4),
                                   measured_cell("block", 2, 3)};
  EXPECT_EQ(speedup(cells, cells[0]), 1);
  EXPECT_EQ(speedup(cells, cells[1]), 1.5);
  EXPECT_EQ(speedup(cells, cells[2]), 2) << "one rank does the same by every method";
  EXPECT_EQ(one_rank_of({cells[1]}, cells[1]), nullptr);
  EXPECT_EQ(speedup({cells[1]}, cells[1]), 2) << "over the predicted step of one rank";
}

TEST(PublishedTable1, IsCompiledIn) {
  EXPECT_EQ(parse_published_table1(published_table1_text()).size(), 20u);
  for (const std::string& model : paper_models())
    for (const int devices : {4, 8}) ASSERT_NE(published_row(model, devices), nullptr) << model;
  const PublishedRow& row = *published_row("resnet101", 8);
  EXPECT_EQ(row.handsplit_min, ">60");
  EXPECT_EQ(row.cudasize_s, 5.89);
  EXPECT_EQ(row.hashrate_s, 9.24);
  EXPECT_EQ(row.own_s, 3.69);
  EXPECT_EQ(published_row("resnet101", 2), nullptr);
  expect_error([] { parse_published_table1("header\na,4,1,2,3\n"); }, {"5 fields"});
  expect_error([] { parse_published_table1("header\na,4,1,x,3,4\n"); }, {"'x' is no number"});
}

TEST(Table1, HasThePublicationsRowsBesideOurs) {
  Table1Row row{.model = "vgg16", .devices = 8};
  row.entries = {std::nullopt, Table1Entry{2e-3, 0.5, false}, Table1Entry{3e-3, 0.4, false},
                 Table1Entry{1e-4, 0.25, true}};
  EXPECT_NEAR(*times_as_fast(row), 300, 1e-9);
  const std::string text = table1_text({row}, "Profiles of nowhere.");
  for (const char* part : {"0.03", "300", ">60", "7.84", "9.34", "Profiles of nowhere."})
    EXPECT_THAT(text, ::testing::HasSubstr(part));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  const nlohmann::json json = nlohmann::json::parse(table1_json({row}));
  EXPECT_EQ(json["rows"][0]["published"]["own_method_s"], 0.03);
  EXPECT_NEAR(json["rows"][0]["times_as_fast"].get<double>(), 300, 1e-9);
  row.devices = 3;
  EXPECT_FALSE(times_as_fast(row)) << "nothing was published for 3";
}

TEST(TimelineFigure, HasNumbersIdleSharesAndAVisibleUpdate) {
  GnuplotScript script("folder");
  const std::string file = draw_timeline(
      script, {{0, "forward", 4, 0, 0.5}, {0, "backward", 4, 0.5, 0.75}, {0, "step", -1, 0.9999, 1}}, 1,
      "timeline-m", "m");
  EXPECT_EQ(file, "figures/timeline-m.svg");
  const std::string text = script.str();
  EXPECT_THAT(text, ::testing::HasSubstr("250 0 4\n")) << "the number in the middle of its box";
  EXPECT_THAT(text, ::testing::HasSubstr("idle 25 %"));
  EXPECT_THAT(text, ::testing::HasSubstr("996.774 1000 0")) << "three pixels of 930";
  EXPECT_EQ(draw_timeline(script, {}, 1, "n", "n"), "");
}

}  // namespace
}  // namespace antichain
