// Steps that overlap change no bit, on one to four ranks, through evaluations, checkpoints, stops and resumed
// runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

using namespace test;

class Overlap : public ::testing::TestWithParam<const char*> {
 protected:
  // The run has two epochs of three steps, each evaluated, with a checkpoint in between.
  TrainingCase two_epochs(const std::string& name) {
    const std::string folder = temporary_.str() + "/" + name;
    std::filesystem::create_directory(folder);
    return {.model = GetParam(),
            .microbatch = 1,
            .microbatches = 3,
            .steps = 3,
            .rate = 0.01f,
            .epochs = 2,
            .checkpoint = folder,
            .every_steps = 2};
  }
  static TrainingRun train(const TrainingCase& c, int ranks, const char* schedule) {
    return train_on_threads(c, ranks, by_antichains, by_policy(policy(schedule)));
  }
  static void expect_same(const TrainingRun& run, const TrainingRun& one, const std::string& what) {
    EXPECT_EQ(run.losses, one.losses) << what;
    EXPECT_EQ(run.state, one.state) << what;
    EXPECT_EQ(run.test_accuracy, one.test_accuracy) << what;
    EXPECT_EQ(run.epoch_losses, one.epoch_losses) << what;
  }

 private:
  TemporaryFolder temporary_;
};

TEST_P(Overlap, ChangesNoBit) {
  TrainingCase apart = two_epochs("one");
  apart.between_ranks = Steps::apart;
  const TrainingRun one = train(apart, 1, "1f1b");
  ASSERT_EQ(one.losses.size(), 6u);
  for (const auto& [ranks, schedule] : {std::pair(1, "1f1b"), {2, "1f1b"}, {3, "zb-h2"}, {4, "zb-h1"}})
    for (const Steps steps : {Steps::apart, Steps::overlapped}) {
      TrainingCase c = two_epochs(fmt::format("{} {}", ranks, int(steps)));
      c.between_ranks = steps;
      const TrainingRun run = train(c, ranks, schedule);
      expect_same(run, one, fmt::format("{} ranks, {}, {}", ranks, schedule, int(steps)));
      ASSERT_EQ(run.checkpoints.size(), 3u);
      for (const CheckpointReport& report : run.checkpoints) EXPECT_EQ(report.failure, "");
    }
}

// A run ends after each number of steps, as if it had been killed, and goes on with another number of ranks.
TEST_P(Overlap, GoesOnWhereItWasCutShort) {
  TrainingCase whole = two_epochs("whole");
  const TrainingRun one = train(whole, 1, "1f1b");
  for (const int cut : {1, 3, 4}) {
    TrainingCase part = two_epochs(std::to_string(cut));
    part.every_steps = 1;
    part.until = cut;
    train(part, 3, "zb-h2");
    part.until = 0;
    const TrainingRun rest = train(part, 2, "zb-h1");
    EXPECT_EQ(rest.first_step, cut);
    EXPECT_EQ(rest.state, one.state) << cut;
    EXPECT_EQ(rest.test_accuracy, one.test_accuracy) << cut;
    EXPECT_EQ(rest.epoch_losses.back(), one.epoch_losses.back()) << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryEdge, Overlap, ::testing::Values("every_edge"));
INSTANTIATE_TEST_SUITE_P(Large, Overlap, ::testing::Values("resnet20", "efficientnet_b0"));

}  // namespace
}  // namespace antichain
