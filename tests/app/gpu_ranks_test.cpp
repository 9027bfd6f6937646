// The program on stand-ins of GPUs (fake_gpus.cpp): each rank uses its own GPU and no other, whatever the command.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/app/program.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string network = "--model resnet20 --batch 2 --microbatches 2 --device cuda ";
const std::string training = "train " + network + "--profile p.json --dataset synthetic --steps 2 ";

class GpuRanks : public ::testing::Test {
 protected:
  // A profile of this network without times: the stand-ins are slow at measuring.
  void SetUp() override {
    const ProgramRun run =
        run_program(folder_.str(), "info --model resnet20 --batch 1 --device cuda --json p.json");
    ASSERT_EQ(run.code, 0) << run.err;
  }
  // On processes of their own, which see the GPUs as `environment` says.
  ProgramRun on_processes(int ranks, const std::string& environment, const std::string& words) const {
    return run_behind(
        folder_.str(),
        fmt::format(
            "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {} '{}' --oversubscribe -n {}",
            environment, ANTICHAIN_MPIEXEC, ranks),
        words);
  }
  ProgramRun on_threads(int ranks, const std::string& environment, const std::string& words) const {
    return run_behind(folder_.str(), "env " + environment, fmt::format("{} --local {}", words, ranks));
  }
  std::string exclusive() const { return "FAKE_GPUS_EXCLUSIVE=" + folder_.str(); }

  TemporaryFolder folder_;
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

TEST_F(GpuRanks, ThreadsTrainAndSaveEachOnItsOwn) {
  const ProgramRun run = on_threads(2, exclusive(), training + "--checkpoint saved --checkpoint-every 1");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("used GPU 0 and 1\n"));
  EXPECT_THAT(run.err, Not(HasSubstr("broken rule")));
}

}  // namespace
}  // namespace antichain
