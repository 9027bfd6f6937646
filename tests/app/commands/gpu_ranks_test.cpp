// These tests run the program on stand-ins of GPUs (fake_gpus.cpp). Each rank must use its own GPU and no
// other, whatever the command is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "framework/error.h"
#include "tests/app/program.h"

namespace antichain {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string network = "--model resnet20 --batch 2 --microbatches 2 --device cuda ";
const std::string training = "train " + network + "--profile p.json --dataset synthetic --steps 2 ";

// Lines are broken where they are long.
std::string one_line(std::string text) {
  std::string line;
  for (const char c : text)
    if (const char shown = c == '\n' ? ' ' : c; shown != ' ' || !line.ends_with(' ')) line += shown;
  return line;
}

class GpuRanks : public ProgramTest {
 protected:
  // A profile of this network without times: the stand-ins are slow at measuring.
  void SetUp() override { ran("info --model resnet20 --batch 1 --device cuda --json p.json"); }
  // Runs ranks as processes of their own, which see the GPUs as `environment` says.
  ProgramRun on_processes(int ranks, const std::string& environment, const std::string& words) const {
    return run_behind(folder_.str(), mpi_launcher(ranks, environment), words);
  }
  ProgramRun on_threads(int ranks, const std::string& environment, const std::string& words) const {
    return run_behind(folder_.str(), "env " + environment, fmt::format("{} --local {}", words, ranks));
  }
  std::string text_of(const std::string& file) const {
    std::ifstream in(folder_.path() / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string exclusive() const { return "FAKE_GPUS_EXCLUSIVE=" + folder_.str(); }
};

void expect_own_gpus(const ProgramRun& run) {
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("rank 0 used GPU 0\n"));
  EXPECT_THAT(run.err, HasSubstr("rank 1 used GPU 1\n"));
  EXPECT_THAT(run.err, Not(HasSubstr("broken rule")));
}

TEST_F(GpuRanks, ProcessesTrainEachOnItsOwn) { expect_own_gpus(on_processes(2, exclusive(), training)); }

TEST_F(GpuRanks, ProcessesMeasureEachOnItsOwn) {
  expect_own_gpus(on_processes(2, exclusive(), "profile " + network + "--profile-cache none --seconds 0.01"));
}

// Tensors of the device, over the transport that was chosen: the profile says which, and the plan after it.
TEST_F(GpuRanks, TheLinkIsMeasuredTheWayThatTensorsGo) {
  const std::string profile =
      "profile " + network + "--profile-cache none --seconds 0.01 --json measured.json ";
  const std::string way = "tensors travel through host memory";  // of threads
  for (const char* choice : {"auto", "mpi"}) {
    const ProgramRun run = on_threads(2, "FAKE_GPUS=2", profile + "--transport " + choice);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("us: " + way)) << choice;
    EXPECT_THAT(text_of("measured.json"), HasSubstr("\"link_way\": \"" + way));
    const std::string plan = ran("plan --profile measured.json --stages 2");
    EXPECT_THAT(one_line(plan), HasSubstr("measured with the profile, where " + way));
  }
  const ProgramRun refused = on_threads(2, "FAKE_GPUS=2", profile + "--transport nccl");
  EXPECT_EQ(refused.code, int(ExitCode::usage)) << refused.err;
  EXPECT_THAT(one_line(refused.err), HasSubstr("ranks 0 and 1 are threads of one process"));

  // A profile of ranks that went another way.
  const std::string other_way = "tensors travel from GPU to GPU by NCCL 2.28.9";
  std::string measured = text_of("measured.json");
  measured.replace(measured.find(way), way.size(), other_way);
  std::ofstream(folder_.path() / "measured.json") << measured;
  const ProgramRun other = on_threads(
      2, "FAKE_GPUS=2",
      "train " + network + "--profile measured.json --dataset synthetic --steps 1 --transport mpi");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(one_line(other.err), HasSubstr("the link of measured.json was measured where " + other_way));
}

TEST_F(GpuRanks, TheLogSaysWhatRanksSeeAndShare) {
  const ProgramRun two = on_threads(2, "FAKE_GPUS=2", training);
  EXPECT_THAT(one_line(two.out), HasSubstr("GPUs 2 visible to each rank, each of which has one of its own"));
  EXPECT_THAT(two.err, Not(HasSubstr("share GPU")));
  const ProgramRun one = on_threads(2, "FAKE_GPUS=1", training);
  EXPECT_THAT(one_line(one.err), HasSubstr("ranks 0, 1 on "));
  EXPECT_THAT(one_line(one.err), HasSubstr("share GPU 0000:00:00.0, the only one that they see"));
  const ProgramRun profile =
      on_threads(2, "FAKE_GPUS=1", "profile " + network + "--profile-cache none --seconds 0.01");
  EXPECT_THAT(one_line(profile.err), HasSubstr("share GPU 0000:00:00.0"));
}

// Two stages fit on a GPU each, but not on one together.
TEST_F(GpuRanks, APlanThatDoesNotFitOnAGpuIsRefusedWithATable) {
  const std::string halves = training + "--method uniform ";
  // What the kernels of the two stages need depends on the processor that stands in for GPUs. Three quarters
  // of it are enough for either stage, but not for both.
  const ProgramRun none = on_threads(2, "FAKE_GPU_MIB=1 FAKE_GPUS=1", halves);
  const std::string said = one_line(none.err);
  const size_t needs = said.find("this plan needs ");
  ASSERT_NE(needs, std::string::npos) << none.err;
  const double both_mib = std::stod(said.substr(said.find("needs ", needs) + 6));
  const std::string memory = fmt::format("FAKE_GPU_MIB={} ", std::ceil(0.75 * both_mib));
  const ProgramRun two = on_threads(2, memory + "FAKE_GPUS=2", halves);
  EXPECT_EQ(two.code, 0) << two.err;
  const ProgramRun one = on_threads(2, memory + "FAKE_GPUS=1", halves);
  EXPECT_EQ(one.code, int(ExitCode::out_of_memory)) << one.err;
  EXPECT_THAT(one.err, ContainsRegex("this plan needs [0-9.]+ MiB on GPU 0000:00:00.0 of [^ ]+, which has "
                                     "[0-9.]+ MiB left"));
  EXPECT_THAT(one.err, ContainsRegex("rank +host"));
  EXPECT_THAT(one.err, Not(HasSubstr("the device has no")));
}

TEST_F(GpuRanks, ThreadsTrainAndSaveEachOnItsOwn) {
  const ProgramRun run = on_threads(2, exclusive(), training + "--checkpoint saved --checkpoint-every 1");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("used GPU 0 and 1\n"));
  EXPECT_THAT(run.err, Not(HasSubstr("broken rule")));
}

}  // namespace
}  // namespace antichain
