// Under mpirun the program prints and refuses once for all ranks, and reads the files of rank 0.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/app/small_job.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;
using UnderMpi = SmallJob;

TEST_F(UnderMpi, AMistakeIsAnsweredByOneSentence) {
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
}

// Only the second rank is given a settings file that is missing, as where one host lacks it.
TEST_F(UnderMpi, ATroubleOfOneRankAloneIsSaidByIt) {
  const std::string words =
      "train --model resnet20 --batch 8 --microbatches 2 --dataset synthetic --steps 1 ";
  const ProgramRun result =
      run_mpi(1, fmt::format("{0} : -n 1 '{1}' {0} --config gone.toml", words, ANTICHAIN_PROGRAM));
  antichain::expect_refused(result, 3, "gone.toml", words);
  EXPECT_THAT(result.err, HasSubstr("antichain: rank 1 on "));
}

// One process does what needs no ranks, even where mpirun starts several.
TEST_F(UnderMpi, RanksThatAreNotNeededKeepStill) {
  for (const std::string words :
       {"--version", "plan --help", "info", "info --model resnet20", "plan --profile p.json --stages 2",
        "simulate --profile p.json --stages 2"}) {
    const ProgramRun alone = run(words), several = run_mpi(3, words);
    EXPECT_EQ(several.code, 0) << words << several.err;
    EXPECT_EQ(std::ranges::count(several.out, '\n'), std::ranges::count(alone.out, '\n')) << words;
  }
}

TEST_F(UnderMpi, RanksPrintOnceAndReadTheFilesOfRankZero) {
  ASSERT_EQ(run("simulate --profile p.json --plan moved.json --microbatches 4 --write-schedule m.txt").code,
            0);
  const std::string train = "train --steps 2 --plan moved.json --schedule m.txt" + std::string(given);
  const ProgramRun processes = run_mpi(2, train + "--json mpi.json");
  ASSERT_EQ(processes.code, 0) << processes.err;
  ASSERT_EQ(run(train + "--local 2 --json local.json").code, 0);
  EXPECT_EQ(read_json("mpi.json")["state"], read_json("local.json")["state"]);
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
