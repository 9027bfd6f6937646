// These tests say what train does where the command line is silent. What the command line says has the last
// word.
#include "app/train/follow_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "models/model.h"

namespace antichain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t batches = 100;  // in an epoch

// resnet20 has one-cycle at 0.3 for a batch of 128 over 10 epochs; resnet18's course begins with a warm-up.
TrainCommandOptions told(std::vector<std::string> words) {
  CLI::App app;
  TrainCommandOptions options;
  add_train_options(app, options);
  std::ranges::reverse(words);
  app.parse(words);
  follow_recipe(app, options);
  return options;
}

double rate_at(const TrainCommandOptions& options, int64_t step) {
  return rate_course(options, batches).rate(step);
}

TEST(FollowRecipe, FillsWhatIsNotGiven) {
  const TrainCommandOptions o = told({"--model", "resnet20"});
  EXPECT_EQ(o.network.batch, 128);
  EXPECT_EQ(o.rate.peak, 0.3);
  EXPECT_EQ(o.rate.schedule, "one-cycle");
  EXPECT_EQ(o.epochs, 10);
  EXPECT_EQ(rate_course(o, batches).total_steps(), 10 * batches);
  EXPECT_TRUE(o.departures.empty());
}

TEST(FollowRecipe, LeavesWhatIsGiven) {
  const TrainCommandOptions o =
      told({"--model", "resnet18", "--batch", "24", "--lr", "0.7", "--lr-schedule", "step", "--warmup-steps",
            "5", "--momentum", "0.5", "--weight-decay", "0.1", "--epochs", "2"});
  EXPECT_EQ(o.network.batch, 24);
  EXPECT_EQ(o.rate.peak, 0.7);
  EXPECT_EQ(o.rate.schedule, "step");
  EXPECT_EQ(o.optimiser.momentum, 0.5f);
  EXPECT_EQ(o.optimiser.weight_decay, 0.1f);
  const LearningRate course = rate_course(o, batches);
  EXPECT_EQ(course.options().warmup_steps, 5);
  EXPECT_EQ(course.total_steps(), 2 * batches);
  EXPECT_THAT(o.departures, ElementsAre("--batch", "--lr", "--lr-schedule", "--warmup-steps", "--momentum",
                                        "--weight-decay", "--epochs"));
}

TEST(FollowRecipe, TheOptimiserIsTheRecipes) {
  const TrainCommandOptions usual = told({"--model", "convnext_tiny", "--batch", "32"});
  EXPECT_EQ(usual.optimiser.name, "adamw");
  EXPECT_DOUBLE_EQ(usual.rate.peak, 0.00025);
  EXPECT_THAT(describe(recipe_of("convnext_tiny")), HasSubstr("AdamW"));
  const TrainCommandOptions sgd = told({"--model", "convnext_tiny", "--optimiser", "sgd"});
  EXPECT_EQ(sgd.rate.peak, shipped_recipe("").rate.peak);
  EXPECT_EQ(sgd.optimiser.momentum, 0.9f);
  EXPECT_THAT(sgd.departures, ElementsAre("--optimiser"));
}

TEST(FollowRecipe, ScalesTheRateWithTheBatch) {
  const TrainCommandOptions o = told({"--model", "resnet20", "--batch", "64", "--steps", "3"});
  EXPECT_DOUBLE_EQ(o.rate.peak, 0.15);
  EXPECT_THAT(describe_recipe(o, batches), HasSubstr("0.15 (0.3 for 128 samples"));
}

// A run of few steps is the beginning of a long one, so its rate does not depend on where it ends.
TEST(FollowRecipe, AShortRunDoesNotSqueezeTheCourse) {
  const TrainCommandOptions few = told({"--steps", "20"}), more = told({"--steps", "200"});
  const TrainCommandOptions whole = told({});
  for (const int64_t step : {0, 10, 19}) {
    EXPECT_EQ(rate_at(few, step), rate_at(more, step));
    EXPECT_EQ(rate_at(few, step), rate_at(whole, step));
  }
  EXPECT_LT(rate_at(few, 19), 0.02);
  EXPECT_EQ(rate_course(told({"--steps", "2000"}), batches).total_steps(), 2000)
      << "longer than the recipe's epochs";
}

TEST(FollowRecipe, StepsCutTheCourseOfGivenEpochs) {
  const TrainCommandOptions cut = told({"--epochs", "3", "--steps", "20"}), whole = told({"--epochs", "3"});
  EXPECT_EQ(rate_course(cut, batches).total_steps(), 3 * batches);
  for (const int64_t step : {0, 10, 19}) EXPECT_EQ(rate_at(cut, step), rate_at(whole, step));
  const TrainCommandOptions cosine = told({"--epochs", "3", "--steps", "20", "--lr-schedule", "cosine"});
  EXPECT_EQ(rate_course(cosine, batches).total_steps(), 3 * batches);
}

// Where the user names the schedule and no epochs, its course is that of the run.
TEST(FollowRecipe, AGivenScheduleEndsWithTheRun) {
  const TrainCommandOptions o = told({"--model", "resnet18", "--steps", "20", "--lr-schedule", "one-cycle"});
  const LearningRate course = rate_course(o, batches);
  EXPECT_EQ(course.total_steps(), 20);
  EXPECT_EQ(course.options().warmup_steps, 0);
  EXPECT_EQ(rate_course(told({"--epochs", "1"}), batches).total_steps(), batches) << "as one with --epochs";
}

TEST(FollowRecipe, AScheduleTakesItsOwnOptions) {
  const TrainCommandOptions step = told({"--lr", "0.2", "--lr-schedule", "step", "--lr-milestones", "0.2,0.6",
                                         "--lr-decay", "0.5", "--epochs", "1"});
  EXPECT_DOUBLE_EQ(rate_at(step, 19), 0.2);
  EXPECT_DOUBLE_EQ(rate_at(step, 20), 0.1);
  EXPECT_DOUBLE_EQ(rate_at(step, 60), 0.05);
  const TrainCommandOptions cosine =
      told({"--lr", "0.2", "--lr-schedule", "cosine", "--lr-final", "0.1", "--epochs", "1"});
  EXPECT_DOUBLE_EQ(rate_at(cosine, 50), 0.15);
  const TrainCommandOptions cycle =
      told({"--lr", "0.2", "--lr-schedule", "one-cycle", "--lr-rise", "0.1", "--epochs", "1"});
  EXPECT_DOUBLE_EQ(rate_at(cycle, 9), 0.2);
}

TEST(FollowRecipe, WarmsUpForAThirdOfAShortCourseAtMost) {
  const auto warmup = [](std::vector<std::string> more, int64_t batches_per_epoch) {
    more.insert(more.begin(), {"--model", "resnet18"});
    return rate_course(told(more), batches_per_epoch).options().warmup_steps;
  };
  const int64_t usual = warmup({}, 1000);
  EXPECT_GT(usual, 30);
  EXPECT_EQ(warmup({"--epochs", "1"}, 100), std::min<int64_t>(usual, 30));
  EXPECT_EQ(warmup({"--warmup-epochs", "0.5"}, 100), 50);
  EXPECT_EQ(warmup({"--warmup-epochs", "0"}, 100), 0);
  EXPECT_EQ(warmup({"--warmup-steps", "0"}, 100), 0);
}

TEST(FollowRecipe, TheLineTellsWhatDeparts) {
  const std::string line = describe_recipe(told({"--lr", "0.1", "--steps", "3"}), batches);
  for (const char* part : {"Recipe", "batch 128", "rate 0.1,", "one-cycle over 1,000 steps", "momentum 0.9",
                           "resnet20's but for --lr"})
    EXPECT_THAT(line, HasSubstr(part));
  EXPECT_THAT(line, Not(HasSubstr("warm-up")));
  EXPECT_THAT(describe(recipe_of("resnet18")), HasSubstr("200 steps of warm-up"));
}

}  // namespace
}  // namespace antichain
