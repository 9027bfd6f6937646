// The program from outside: every mistake is answered by one sentence and a documented code, started alone,
// as threads and under mpirun; and every file it writes can be passed back in.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "framework/json.h"
#include "tests/app/program.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

constexpr const char* network = " --model resnet20 --batch 16 --microbatches 4 ";
constexpr const char* given =
    " --model resnet20 --batch 16 --microbatches 4 --data-dir data --profile p.json ";

Json read_json(const std::string& file) { return Json::parse(read_file(file)); }

std::vector<Json> read_lines(const std::string& file) {
  std::vector<Json> lines;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

// A folder with a small subset, a profile, a plan of two stages and spoilt variants of them.
class Program : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_bytes(folder_->path() / "data/data_batch_1.bin", records(48));
    write_bytes(folder_->path() / "data/test_batch.bin", records(23));  // the last test batch is uneven
    const ProgramRun profile = run(std::string("profile") + network + "--local 2 --json p.json");
    ASSERT_EQ(profile.code, 0) << profile.err;
    const ProgramRun plan = run("plan --profile p.json --stages 2 --json plan.json");
    ASSERT_EQ(plan.code, 0) << plan.err;
    spoil_plans();
    spoil_data();
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string path(const std::string& name) { return folder_->str() + "/" + name; }
  static ProgramRun run(const std::string& words) { return run_program(folder_->str(), words); }
  static ProgramRun run_mpi(int ranks, const std::string& words) {
    return run_under_mpi(folder_->str(), ranks, words);
  }

  // The two plans differ in one node, which moves to the next stage.
  static void spoil_plans() {
    const Json plan = read_json(path("plan.json"));
    Json moved = plan, cyclic = plan, empty = plan, other = plan;
    Json& first = moved["stages"][0]["nodes"];
    moved["stages"][1]["nodes"].push_back(first.back());
    first.erase(first.size() - 1);
    cyclic["stages"][0]["nodes"].swap(cyclic["stages"][1]["nodes"]);
    empty["stages"] = Json::array();
    other["model"] = "vgg16";
    write_file(path("moved.json"), moved.dump(1));
    write_file(path("cyclic.json"), cyclic.dump(1));
    write_file(path("empty.json"), empty.dump(1));
    write_file(path("other.json"), other.dump(1));
    write_file(path("malformed.json"), "{\n  \"format\": \"x\",,\n}\n");
    write_file(path("twice.json"), "{\"model\": \"a\", \"model\": \"b\"}");
  }

  static void spoil_data() {
    std::vector<uint8_t> bytes = records(48);
    bytes[3073 * 5] = 10;  // the first byte of record 5 is its label
    write_bytes(folder_->path() / "label/data_batch_1.bin", bytes);
    bytes.resize(5000);
    write_bytes(folder_->path() / "truncated/data_batch_1.bin", bytes);
    std::filesystem::create_directory(folder_->path() / "nothing");
  }

  // Started alone, where nobody else may add a line either.
  static void expect_refused(const std::string& words, int code, const std::string& part) {
    const ProgramRun result = run(words);
    antichain::expect_refused(result, code, part, words);
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Program::folder_ = nullptr;

TEST_F(Program, AnswersMistypedWordsWithTheNearest) {
  expect_refused("", 2, "a command is missing");
  expect_refused("trian", 2, "did you mean 'train'");
  expect_refused("train --modle resnet18", 2, "did you mean --model?");
  expect_refused("train --model resnet19", 2, "did you mean 'resnet18'");
  expect_refused("info --model vgg17", 2, "did you mean 'vgg16'");
  expect_refused("train --dataset cifar11", 2, "did you mean 'cifar10'");
  expect_refused("train --device gpu", 2, "there is no device 'gpu': did you mean 'cuda'?");
  expect_refused("train --augment device", 2, "the ranks compute on the CPU");
  expect_refused("plan --method uniforn --profile p.json", 2, "did you mean 'uniform'");
  expect_refused("plan --objective fast --profile p.json", 2, "compute-or-transfer");
  expect_refused("train --lr-schedule cosin", 2, "did you mean 'cosine'");
  expect_refused(std::string("train --schedule 1f2b") + given, 2, "did you mean '1f1b'");
  expect_refused(std::string("train --schedule forward-only") + given, 2, "forward-only");
}

TEST_F(Program, RefusesNumbersThatMakeNoSense) {
  const char* cases[] = {"--steps 0",
                         "--steps -1",
                         "--epochs 0",
                         "--lr nan",
                         "--lr 0",
                         "--lr inf",
                         "--momentum nan",
                         "--momentum -1",
                         "--microbatches 0",
                         "--batch 0",
                         "--batch 1000000000",
                         "--weight-decay nan",
                         "--threads 0",
                         "--label-smoothing 1",
                         "--local 0",
                         "--local 100000",
                         "--watchdog nan",
                         "--seed -1",
                         "--stages 0",
                         "--link-latency-s -1"};
  for (const std::string words : cases)
    expect_refused("train " + words, 2, words.substr(0, words.find(' ')) + " takes a");
  expect_refused("train --batch 10 --microbatches 4", 2, "4 micro-batches of equal size");
  expect_refused("simulate --profile p.json --stages 2 --microbatches 100000", 2, "--microbatches takes");
}

TEST_F(Program, RefusesFilesThatCantBeUsed) {
  const std::string with = std::string("train --local 2") + given;
  expect_refused(with + "--plan nowhere.json", 3, "nowhere.json");
  expect_refused(with + "--plan malformed.json", 3, "malformed.json:2");
  expect_refused(with + "--plan twice.json", 3, "\"model\" stands twice");
  expect_refused(with + "--plan other.json", 3, "for the model vgg16");
  expect_refused(with + "--plan cyclic.json", 3, "cycle");
  expect_refused(with + "--plan empty.json", 3, "empty");
  expect_refused("train --local 3 --plan plan.json" + std::string(given), 2, "the plan is for 2 ranks");
  expect_refused(with + "--stages 3", 2, "the plan is for 3 ranks");
  expect_refused(with + "--plan plan.json --stages 3", 2, "plan.json is a plan of 2 stages, but --stages 3");
  expect_refused("simulate --profile p.json --plan plan.json --stages 3", 2, "but --stages 3 is asked for");
  expect_refused("plan --profile p.json --stages 1000", 2, "1000 stages");
  expect_refused("plan --profile malformed.json", 3, "malformed.json:2");
  expect_refused("train --config nowhere.toml", 3, "nowhere.toml");
  std::filesystem::create_symlink("loop", path("loop"));
  const std::string long_name(300, 'n');
  for (const std::string& file :
       {std::string("loop"), long_name, std::string("/dev/zero"), std::string("/proc/self/mem")})
    for (const char* option : {"--config ", "--plan ", "--cluster ", "--init ", "--profile "})
      expect_refused(
          "train " + std::string(option == std::string("--profile ") ? network : given) + " " + option + file,
          3, file == long_name ? "File name too long" : file);
  expect_refused("train --model vgg16 --batch 16 --microbatches 4 --data-dir data --profile p.json", 3,
                 "the profile of resnet20");
  expect_refused("simulate --profile p.json --plan plan.json --schedule p.json", 3, "p.json");
}

TEST_F(Program, RefusesDataThatCantBeUsed) {
  const std::string with = std::string("train --profile p.json") + network;
  expect_refused(with + "--data-dir nowhere", 3, "no such data folder");
  expect_refused(with + "--data-dir nothing", 3, "data_batch_1.bin");
  expect_refused(with + "--data-dir truncated", 3, "truncated");
  expect_refused(with + "--data-dir label", 3, "record 5 has label 10");
  expect_refused("train --batch 64 --microbatches 4 --data-dir data", 3, "larger than the training set");
  // The sentence has a table below it.
  antichain::expect_refused(run("profile --batch 1000000 --microbatches 1"), 5,
                            "measuring this network needs", "profile");
}

TEST_F(Program, FindsOutBeforeTheWorkThatAResultCantBeWritten) {
  for (const std::string option : {"--metrics", "--trace", "--json"})
    expect_refused("train " + option + " no/x" + given, 3, "there is no folder no");
  expect_refused(std::string("train --metrics /proc/x") + given, 3, "/proc/x");
  expect_refused("profile --json no/p.json", 3, "there is no folder no");
  expect_refused("simulate --profile p.json --stages 2 --trace no/x", 3, "there is no folder no");
  expect_refused("info --json no/x", 3, "there is no folder no");
}

TEST_F(Program, SaysTheSameUnderMpi) {
  const auto refused = [](const std::string& words, int code, const std::string& part) {
    antichain::expect_refused(run_mpi(3, words), code, part, words);
  };
  refused("train --model resnet19", 2, "did you mean 'resnet18'");
  refused(std::string("train --data-dir truncated") + network, 3, "truncated");
  refused("train --plan plan.json" + std::string(given), 2, "the plan is for 2 ranks, but the job has 3");
  refused("train --plan malformed.json" + std::string(given), 3, "malformed.json:2");
  refused("train --metrics no/x" + std::string(given), 3, "there is no folder no");
  refused("train --local 2", 2, "--local");
  refused("simulate --profile nowhere.json --stages 2", 3, "nowhere.json");
  refused("experiment speedup --profiles data --out study", 2, "starts its ranks itself");
}

// Such as the settings file of its host, which is missing there.
TEST_F(Program, ATroubleOfOneRankAloneIsSaidByItUnderMpi) {
  const std::string words =
      "train --model resnet20 --batch 8 --microbatches 2 --dataset synthetic --steps 1 ";
  const ProgramRun result =
      run_mpi(1, fmt::format("{0} : -n 1 '{1}' {0} --config gone.toml", words, ANTICHAIN_PROGRAM));
  antichain::expect_refused(result, 3, "gone.toml", words);
  EXPECT_THAT(result.err, HasSubstr("antichain: rank 1 on "));
}

// What needs no ranks is done by one process, whoever starts several.
TEST_F(Program, MpiRanksThatAreNotNeededKeepStill) {
  for (const std::string words :
       {"--version", "plan --help", "info", "info --model resnet20", "plan --profile p.json --stages 2",
        "simulate --profile p.json --stages 2"}) {
    const ProgramRun alone = run(words), several = run_mpi(3, words);
    EXPECT_EQ(several.code, 0) << words << several.err;
    EXPECT_EQ(std::ranges::count(several.out, '\n'), std::ranges::count(alone.out, '\n')) << words;
  }
}

TEST_F(Program, PlansAndSchedulesGoRoundAsFiles) {
  ASSERT_EQ(
      run("simulate --profile p.json --plan plan.json --microbatches 4 --schedule gpipe --json sim.json "
          "--trace predicted.json --write-schedule s.txt --width 80")
          .code,
      0);
  EXPECT_EQ(
      run("simulate --profile p.json --plan plan.json --microbatches 4 --schedule s.txt --json again.json")
          .code,
      0);
  EXPECT_EQ(read_file(path("sim.json")), read_file(path("again.json")));
  const Json prediction = read_json(path("sim.json"));
  EXPECT_GT(prediction["step_s"], 0);
  EXPECT_EQ(prediction["peak_memory_bytes"].size(), 2u);

  const std::string train = std::string("train --local 2 --steps 2") + given;
  ASSERT_EQ(run(train + "--plan plan.json --schedule s.txt --json a.json --trace measured.json").code, 0);
  ASSERT_EQ(run(train + "--plan moved.json --json b.json").code, 0) << "an edited plan";
  const Json a = read_json(path("a.json")), b = read_json(path("b.json"));
  EXPECT_NE(a["plan_hash"], b["plan_hash"]);
  EXPECT_EQ(a["state"], b["state"]) << "the same bits whatever the cut and the schedule";

  // The same labels on the same ranks, so that the two lie over each other.
  const auto labels = [](const Json& trace) {
    std::vector<std::pair<int, std::string>> all;
    for (const Json& event : trace["traceEvents"])
      if (event["ph"] == "X") all.emplace_back(event["tid"], event["name"]);
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(labels(read_json(path("predicted.json"))), labels(read_json(path("measured.json"))));
}

// The order is planned by one rank, so all do the same, with the bits of one rank.
TEST_F(Program, AnOrderIsPlannedSimulatedRehearsedAndTrained) {
  const ProgramRun simulated =
      run("simulate --profile p.json --stages 2 --microbatches 4 --schedule auto --write-schedule auto.txt");
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  const auto in_one_line = [](const ProgramRun& run) {
    return std::regex_replace(run.out, std::regex("\\s+"), " ");
  };
  EXPECT_THAT(in_one_line(simulated), HasSubstr("under auto (stages cut for zb-h1)"));
  EXPECT_THAT(in_one_line(simulated), HasSubstr("Order searched"));
  EXPECT_THAT(in_one_line(simulated), HasSubstr("at most 2 micro-batches in flight"));
  const ProgramRun limited =
      run("plan --profile p.json --stages 2 --microbatches 4 --schedule auto --in-flight 3,1");
  EXPECT_EQ(limited.code, 0) << limited.err;
  EXPECT_THAT(in_one_line(limited), HasSubstr("at most 3, 1 micro-batches in flight"));
  EXPECT_EQ(run("rehearse --profile p.json --stages 2 --microbatches 4 --schedule auto").code, 0);
  const std::string train =
      "train --model resnet20 --dataset synthetic --batch 16 --microbatches 4 --steps 2 "
      "--lr-schedule constant --profile p.json --json r.json ";
  const auto state = [&](const std::string& options) {
    const ProgramRun trained = run(train + options);
    EXPECT_EQ(trained.code, 0) << trained.err;
    return read_json(path("r.json")).at("state");
  };
  EXPECT_EQ(state("--local 2 --schedule auto"), state("--local 1"));
  const auto refused = [](const std::string& words, const std::string& part) {
    antichain::expect_refused(run(words), 2, part, words);
  };
  const std::string plan = "plan --profile p.json --stages 2 --microbatches 4 ";
  refused(plan + "--in-flight 2", "--in-flight limits the orders of --schedule auto");
  refused(plan + "--schedule auto --in-flight 0", "takes numbers from 1");
  refused(plan + "--schedule auto --in-flight 1,2,3", "has 3 numbers, but the plan has 2 ranks");
  refused(plan + "--schedule auto --replicas 2,1", "one stage a rank without replicas");
}

TEST_F(Program, SchedulesOfSeveralStagesARankAreComparedTradedAndTrained) {
  const auto refused = [](const std::string& words, int code, const std::string& part) {
    antichain::expect_refused(run(words), code, part, words);
  };
  const ProgramRun compared =
      run("simulate --profile p.json --stages 2 --microbatches 5 --compare-schedules --width 80");
  EXPECT_EQ(compared.code, 0) << compared.err;
  for (const char* name :
       {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v", "auto"})
    EXPECT_THAT(compared.out, HasSubstr(name));
  EXPECT_THAT(compared.out, HasSubstr("interleaved can't be run with 5 micro-batches on 2 ranks"));
  refused("simulate --profile p.json --plan plan.json --compare-schedules", 2, "--compare-schedules plans");
  refused("plan --profile p.json --stages 2 --schedule zb-v --chunks 3", 2, "zb-v has 2 stages a rank");
  refused("plan --profile p.json --stages 2 --schedule interleaved --microbatches 5", 2, "--microbatches 6");

  const ProgramRun planned =
      run("plan --profile p.json --stages 2 --schedule dualpipe-v --microbatches 4 --json v.json");
  EXPECT_THAT(planned.out, HasSubstr("Uneven stages"));
  ASSERT_EQ(
      run("simulate --profile p.json --plan v.json --schedule dualpipe-v --microbatches 4 --json a.json "
          "--write-schedule v.csv")
          .code,
      0);
  EXPECT_THAT(read_file(path("v.csv")), HasSubstr(")OVERLAP_F_B"));
  ASSERT_EQ(
      run("simulate --profile p.json --plan v.json --schedule v.csv --microbatches 4 --json b.json").code, 0);
  EXPECT_EQ(read_file(path("a.json")), read_file(path("b.json")));
  write_file(path("bad.csv"), "0F0,0SEND_F0\n1F0\n");
  refused("simulate --profile p.json --plan v.json --schedule bad.csv --microbatches 1", 3, "bad.csv:1:5");

  const std::string train = std::string("train --local 2 --steps 2") + given;
  ASSERT_EQ(run(train + "--plan v.json --schedule v.csv --json c.json").code, 0);
  ASSERT_EQ(run(train + "--schedule 1f1b --json d.json").code, 0);
  EXPECT_EQ(read_json(path("c.json"))["state"], read_json(path("d.json"))["state"]);
}

TEST_F(Program, TrainsForTheSmallestStepOnTheClusterThatIsGiven) {
  write_file(path("cluster.json"), R"({"format": "antichain cluster 1",
    "within_node": {"bytes_per_s": 2e10, "latency_us": 3},
    "between_nodes": {"bytes_per_s": 1e9, "latency_us": 20},
    "nodes": [{"devices": [{"speed": 1, "memory_bytes": 900000000, "count": 4}]}]})");
  const std::string train = std::string("train --steps 1 ") + given;
  const ProgramRun result = run(train + "--local 2 --cluster cluster.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 stages")) << "one per rank, however many devices the file has";
  EXPECT_THAT(result.out, HasSubstr("Objective makespan, 4 micro-batches under 1f1b"));
  EXPECT_THAT(result.out, HasSubstr("(of cluster.json)"));
  expect_refused(train + "--local 2 --memory-bytes 1000", 3, "smallest that would do");
  // A plan with replicas, which needs a rank for each.
  ASSERT_EQ(run("plan --profile p.json --replicas 2,1 --json replicated.json").code, 0);
  const ProgramRun replicated = run(train + "--local 3 --plan replicated.json");
  ASSERT_EQ(replicated.code, 0) << replicated.err;
  EXPECT_THAT(replicated.out, HasSubstr("0-1"));
  expect_refused(train + "--local 2 --plan replicated.json", 2, "the plan is for 3 ranks, but the job has 2");
  expect_refused(train + "--local 2 --replicas 2,1", 2, "the plan is for 3 ranks, but the job has 2");

  // Nodes by name instead of number: the same plan.
  Json named = read_json(path("plan.json"));
  for (Json& stage : named["stages"]) stage["nodes"] = stage["names"];
  write_file(path("named.json"), named.dump(1));
  ASSERT_EQ(run(train + "--local 2 --plan plan.json --json a.json").code, 0);
  ASSERT_EQ(run(train + "--local 2 --plan named.json --json b.json").code, 0);
  EXPECT_EQ(read_json(path("a.json"))["plan_hash"], read_json(path("b.json"))["plan_hash"]);
}

TEST_F(Program, MetricsCountStepsAndEpochsFromOne) {
  const ProgramRun result = run(std::string("train --epochs 2 --metrics m.jsonl") + given);
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<Json> lines = read_lines(path("m.jsonl"));
  std::vector<int> steps, epochs;
  for (const Json& line : lines) {
    EXPECT_EQ(line["data"], "CIFAR-10 (a subset)");
    if (line.contains("step")) {
      steps.push_back(line["step"]);
      EXPECT_TRUE(line["loss"].is_number() && line["images_per_s"] > 0);
    } else if (line.contains("epoch")) {
      epochs.push_back(line["epoch"]);
      EXPECT_NEAR(double(line["test_accuracy"]) * 23, std::round(double(line["test_accuracy"]) * 23), 1e-9)
          << "whole images of the 23";
    }
  }
  EXPECT_EQ(steps, (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(epochs, (std::vector<int>{1, 2}));
  EXPECT_TRUE(lines.back().contains("predicted_step_s") && lines.back().contains("measured_step_s"));
  EXPECT_THAT(result.out, HasSubstr("Test accuracy"));
  EXPECT_THAT(result.out, HasSubstr("He et al.,"));
  EXPECT_THAT(result.out, HasSubstr("(antichain citations)"));
  EXPECT_THAT(run("citations").out, HasSubstr("Deep Residual Learning"));
  EXPECT_THAT(result.out, HasSubstr("predicted"));
}

TEST_F(Program, GeneratedDataIsNamedInEveryOutput) {
  write_bytes(folder_->path() / "made/data_batch_1.bin", records(48));
  write_bytes(folder_->path() / "made/test_batch.bin", records(23));
  write_file(path("made/GENERATED"), "");
  const ProgramRun result =
      run(std::string("train --epochs 1 --metrics g.jsonl --json g.json --trace g.trace "
                      "--profile p.json --data-dir made") +
          network);
  ASSERT_EQ(result.code, 0) << result.err;
  for (const Json& line : read_lines(path("g.jsonl"))) EXPECT_EQ(line["data"], "generated (not CIFAR-10)");
  EXPECT_EQ(read_json(path("g.json"))["data"], "generated (not CIFAR-10)");
  EXPECT_THAT(read_file(path("g.trace")), HasSubstr("generated (not CIFAR-10)"));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const bool names_data =
        line.starts_with("Data:") || line.starts_with("epoch") || line.starts_with("Test accuracy");
    EXPECT_EQ(names_data, line.find("generated (not CIFAR-10)") != std::string::npos) << line;
  }
}

// Asked to adapt, the program goes on where there is no GPU, and says what that means.
TEST_F(Program, AutoMakesImagesWhereItComputes) {
  const ProgramRun result = run(std::string("train --steps 1 --device auto --augment device") + given);
  if (result.err.find("on the CPU") == std::string::npos) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("antichain: computing, and making images, on the CPU: "));
}

TEST_F(Program, TheDoctorLooksWhereAFolderWouldBeMade) {
  for (const std::string folder : {"new", "new/of/it/", "data"}) {
    const ProgramRun result = run("doctor --checkpoint " + folder);
    EXPECT_THAT(result.out, HasSubstr("written and synced")) << folder << result.err;
    EXPECT_EQ(std::filesystem::exists(path("new")), false) << "it leaves nothing";
  }
  EXPECT_THAT(run("doctor --checkpoint /proc/new").out, HasSubstr("can't write to /proc"));
}

// A machine without the instructions, which ONEDNN_MAX_CPU_ISA makes of any, is told so before anything else
// is looked at.
TEST_F(Program, ComputesInBf16OrSaysWhyNot) {
  ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", 1);
  for (const char* command : {"profile", "plan --stages 2", "train --data-dir nothing"})
    expect_refused(command + std::string(network) + "--precision bf16", 2, "AVX512_BF16");
  ::unsetenv("ONEDNN_MAX_CPU_ISA");
  const ProgramRun profile = run(std::string("profile --precision bf16 --json half.json") + network);
  if (profile.err.find("AVX512_BF16") != std::string::npos) GTEST_SKIP() << profile.err;
  ASSERT_EQ(profile.code, 0) << profile.err;
  EXPECT_EQ(read_json(path("half.json"))["precision"], "bf16");
  const std::string half = std::string(network) + "--data-dir data --profile half.json --precision bf16 ";
  const ProgramRun training =
      run("train --local 2 --steps 2 --json half-result.json --checkpoint half" + half);
  ASSERT_EQ(training.code, 0) << training.err;
  EXPECT_EQ(read_json(path("half-result.json"))["precision"], "bf16");
  expect_refused("train --profile half.json --data-dir data" + std::string(network), 3, "in bf16");
  expect_refused("train --steps 3 --resume half" + std::string(given), 3, "bf16");
}

TEST_F(Program, StepsAloneGoBeyondAnEpoch) {
  ASSERT_EQ(run(std::string("train --steps 4 --json n.json") + given).code, 0);
  EXPECT_EQ(read_json(path("n.json"))["steps"], 4) << "an epoch has 3";
  ASSERT_EQ(run(std::string("train --steps 4 --epochs 1 --json n.json") + given).code, 0);
  EXPECT_EQ(read_json(path("n.json"))["steps"], 3);
}

TEST_F(Program, TablesAndHelpFitEightyColumns) {
  for (const std::string words :
       {"--help",
        "info",
        "info --model squeezenet --batch 128",
        "info --help",
        "profile --help",
        "plan --help",
        "simulate --help",
        "rehearse --help",
        "train --help",
        "doctor --help",
        "export --help",
        "evaluate --help",
        "gradients --help",
        "data --help",
        "data pack --help",
        "data show --help",
        "data batches --help",
        "experiment --help",
        "experiment table1 --help",
        "experiment speedup --help",
        "plan --profile p.json --stages 3",
        "plan --profile p.json --stages 3 --memory-bytes 900000000",
        "plan --profile p.json --stages 3 --compare",
        "simulate --profile p.json --stages 4 --microbatches 20",
        "train --profile p.json --data-dir data --local 2 --steps 2 --model resnet20 --batch 16 "
        "--microbatches 4"}) {
    const ProgramRun result = run(words);
    EXPECT_EQ(result.code, 0) << words << result.err;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("epoch ")) continue;  // of progress: one line each, with all there is to say
      const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(characters, 80) << words << ": " << line;
    }
  }
}

TEST_F(Program, MpiRanksPrintOnceAndReadTheFilesOfRankZero) {
  ASSERT_EQ(run("simulate --profile p.json --plan moved.json --microbatches 4 --write-schedule m.txt").code,
            0);
  const std::string train = "train --steps 2 --plan moved.json --schedule m.txt" + std::string(given);
  const ProgramRun processes = run_mpi(2, train + "--json mpi.json");
  ASSERT_EQ(processes.code, 0) << processes.err;
  ASSERT_EQ(run(train + "--local 2 --json local.json").code, 0);
  EXPECT_EQ(read_json(path("mpi.json"))["state"], read_json(path("local.json"))["state"]);
  size_t plans = 0;
  for (size_t at = processes.out.find("Plan for"); at != std::string::npos;
       at = processes.out.find("Plan for", at + 1))
    ++plans;
  EXPECT_EQ(plans, 1u);
  EXPECT_EQ(processes.out.find('\r' + std::string("\x1b")), std::string::npos)
      << "no bar where mpirun writes to a file";
}

}  // namespace
}  // namespace antichain
