// Training follows the cluster, the data and the precision that are given, and says so in what it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "framework/json.h"
#include "tests/app/small_job.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;
using Training = SmallJob;

TEST_F(Training, TrainsForTheSmallestStepOnTheClusterThatIsGiven) {
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
  expect_refused(train + "--local 2 --memory-bytes 1000", 3, "the smallest that");
  // A plan with replicas needs a rank for each of them.
  ASSERT_EQ(run("plan --profile p.json --replicas 2,1 --json replicated.json").code, 0);
  const ProgramRun replicated = run(train + "--local 3 --plan replicated.json");
  ASSERT_EQ(replicated.code, 0) << replicated.err;
  EXPECT_THAT(replicated.out, HasSubstr("0-1"));
  expect_refused(train + "--local 2 --plan replicated.json", 2, "the plan is for 3 ranks, but the job has 2");
  expect_refused(train + "--local 2 --replicas 2,1", 2, "--replicas 2,1 is for 3 ranks, but the job has 2");

  // A plan that names its nodes is the same as one that numbers them.
  Json named = read_json("plan.json");
  for (Json& stage : named["stages"]) stage["nodes"] = stage["names"];
  write_file(path("named.json"), named.dump(1));
  ASSERT_EQ(run(train + "--local 2 --plan plan.json --json a.json").code, 0);
  ASSERT_EQ(run(train + "--local 2 --plan named.json --json b.json").code, 0);
  EXPECT_EQ(read_json("a.json")["plan_hash"], read_json("b.json")["plan_hash"]);
}

TEST_F(Training, MetricsCountStepsAndEpochsFromOne) {
  const ProgramRun result = run(std::string("train --epochs 2 --metrics m.jsonl") + given);
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<Json> lines = read_lines("m.jsonl");
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

// What is measured is what `train` would do: by the recipe's optimiser, or by the one that is named.
TEST_F(Training, AProfileHasTheBytesOfItsOptimiser) {
  const auto bytes = [&](const std::string& words) {
    const ProgramRun result = run("profile --seconds 0.01 --json o.json " + words + network);
    EXPECT_EQ(result.code, 0) << result.err;
    const Json node = read_json("o.json")["nodes"][2];
    const int64_t weights = node["param_bytes"];
    return double(node.value("optimiser_bytes", weights)) / double(weights);
  };
  EXPECT_EQ(bytes(""), 1) << "momentum";
  EXPECT_EQ(bytes("--optimiser adamw"), 2) << "two moments";
  EXPECT_EQ(bytes("--optimiser adamw --ema 0.9"), 3) << "and the average";
  expect_refused("plan --profile p.json --optimiser adamw", 2, "--profile excludes --optimiser");
}

// Each accuracy on a test set stands beside it; the lines of progress in between do not repeat it.
TEST_F(Training, GeneratedDataIsNamedInEveryOutput) {
  write_bytes(path("made/data_batch_1.bin"), records(48));
  write_bytes(path("made/test_batch.bin"), records(23));
  write_file(path("made/GENERATED"), "");
  const ProgramRun result =
      run(std::string("train --epochs 1 --metrics g.jsonl --json g.json --trace g.trace "
                      "--profile p.json --data-dir made") +
          network);
  ASSERT_EQ(result.code, 0) << result.err;
  for (const Json& line : read_lines("g.jsonl")) EXPECT_EQ(line["data"], "generated (not CIFAR-10)");
  EXPECT_EQ(read_json("g.json")["data"], "generated (not CIFAR-10)");
  EXPECT_THAT(read_file(path("g.trace")), HasSubstr("generated (not CIFAR-10)"));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const bool names_data =
        line.starts_with("Data:") || line.starts_with("epoch 1 done") || line.starts_with("Test accuracy");
    EXPECT_EQ(names_data, line.find("generated (not CIFAR-10)") != std::string::npos) << line;
  }
  EXPECT_THAT(result.out, HasSubstr("this is no result"));
}

// --device auto asks the program to adapt, so without a GPU it goes on and says what that means.
TEST_F(Training, AutoMakesImagesWhereItComputes) {
  const ProgramRun result = run(std::string("train --steps 1 --device auto --augment device") + given);
  if (result.err.find("on the CPU") == std::string::npos) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("antichain: computing, and making images, on the CPU: "));
}

// A machine without the instructions is told so before anything else is looked at. ONEDNN_MAX_CPU_ISA makes
// any machine one of those.
TEST_F(Training, ComputesInBf16OrSaysWhyNot) {
  ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", 1);
  for (const char* command : {"profile", "plan --stages 2", "train --data-dir nothing"})
    expect_refused(command + std::string(network) + "--precision bf16", 2, "AVX512_BF16");
  ::unsetenv("ONEDNN_MAX_CPU_ISA");
  const ProgramRun profile = run(std::string("profile --precision bf16 --json half.json") + network);
  if (profile.err.find("AVX512_BF16") != std::string::npos) GTEST_SKIP() << profile.err;
  ASSERT_EQ(profile.code, 0) << profile.err;
  EXPECT_EQ(read_json("half.json")["precision"], "bf16");
  const std::string half = std::string(network) + "--data-dir data --profile half.json --precision bf16 ";
  const ProgramRun training =
      run("train --local 2 --steps 2 --json half-result.json --checkpoint half" + half);
  ASSERT_EQ(training.code, 0) << training.err;
  EXPECT_EQ(read_json("half-result.json")["precision"], "bf16");
  expect_refused("train --profile half.json --data-dir data" + std::string(network), 3, "in bf16");
  expect_refused("train --steps 3 --resume half" + std::string(given), 3, "bf16");
}

TEST_F(Training, StepsAloneGoBeyondAnEpoch) {
  ASSERT_EQ(run(std::string("train --steps 4 --json n.json") + given).code, 0);
  EXPECT_EQ(read_json("n.json")["steps"], 4) << "an epoch has 3";
  ASSERT_EQ(run(std::string("train --steps 4 --epochs 1 --json n.json") + given).code, 0);
  EXPECT_EQ(read_json("n.json")["steps"], 3);
}

}  // namespace
}  // namespace antichain
