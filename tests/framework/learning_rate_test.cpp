// The values were recorded from PyTorch 1.13's schedulers (torch.optim.lr_scheduler) with a peak of 0.3 over
// 100 steps. Both compute in double with a few roundings, so they are equal to 1e-12 of the peak.
#include "framework/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

using Recorded = std::initializer_list<std::pair<int64_t, double>>;

void expect_rates(const LearningRateOptions& options, int64_t total, Recorded recorded) {
  const LearningRate schedule(options, total);
  for (const auto& [step, rate] : recorded) EXPECT_NEAR(schedule.rate(step), rate, 3e-13) << "step " << step;
}

TEST(LearningRate, OneCycleIsPyTorchs) {
  expect_rates({.schedule = "one-cycle", .peak = 0.3}, 100,
               {{0, 0.01200000000000001},
                {1, 0.012844134169772203},
                {10, 0.08854918453923022},
                {29, 0.3},
                {30, 0.29984896058535726},
                {64, 0.1500006},
                {98, 0.00015223941464273638},
                {99, 1.2e-06}});
}

TEST(LearningRate, CosineIsPyTorchs) {
  expect_rates(
      {.schedule = "cosine", .peak = 0.3}, 100,
      {{0, 0.3}, {1, 0.2999259840548597}, {25, 0.2560660171779821}, {50, 0.15}, {99, 7.401594514025999e-05}});
}

TEST(LearningRate, StepIsPyTorchsMultiStep) {
  expect_rates({.schedule = "step", .peak = 0.3}, 100,
               {{0, 0.3}, {49, 0.3}, {50, 0.03}, {74, 0.03}, {75, 0.003}, {99, 0.003}});
}

TEST(LearningRate, NumbersOfASchedulesOwnAreAlsoPyTorchs) {
  expect_rates({.schedule = "cosine", .peak = 0.3, .final_rate = 0.01}, 100,
               {{0, 0.3},
                {1, 0.2999284512530311},
                {25, 0.2575304832720493},
                {50, 0.15500000000000003},
                {99, 0.010071548746968919}});
  expect_rates({.schedule = "step", .peak = 0.3, .milestones = {0.3, 0.6, 0.9}, .decay = 0.2}, 100,
               {{0, 0.3}, {29, 0.3}, {30, 0.06}, {59, 0.06}, {60, 0.012}, {89, 0.012}, {90, 0.0024}});
  expect_rates({.schedule = "one-cycle", .peak = 0.3, .rise_share = 0.1}, 100,
               {{0, 0.01200000000000001},
                {5, 0.18100533758403797},
                {9, 0.3},
                {10, 0.2999086244183682},
                {50, 0.17087648164014924},
                {99, 1.2e-06}});
}

TEST(LearningRate, RefusesNumbersThatMakeNoSense) {
  for (const LearningRateOptions& wrong :
       std::initializer_list<LearningRateOptions>{{.milestones = {0.7, 0.2}},
                                                  {.milestones = {NAN}},
                                                  {.milestones = {0.5, 1.5}},
                                                  {.decay = 0},
                                                  {.decay = 2},
                                                  {.peak = 0.1, .final_rate = 0.2},
                                                  {.final_rate = -1},
                                                  {.rise_share = 1.1}}) {
    EXPECT_THROW((LearningRate{wrong, 10}), Error);
  }
  for (const double whole : {0.0, 1.0})
    EXPECT_NEAR(LearningRate({.peak = 0.3, .rise_share = whole}, 10).rate(whole == 0 ? 0 : 9), 0.3, 1e-12);
}

TEST(LearningRate, WarmUpRisesLinearlyAndTheScheduleFollows) {
  const LearningRateOptions options{.schedule = "cosine", .peak = 0.4, .warmup_steps = 4};
  expect_rates(options, 104, {{0, 0.1}, {1, 0.2}, {2, 0.3}, {3, 0.4}, {4, 0.4}, {54, 0.2}});
  expect_rates({.schedule = "constant", .peak = 0.4, .warmup_steps = 2}, 9, {{0, 0.2}, {1, 0.4}, {8, 0.4}});
}

TEST(LearningRate, VeryShortRunsHaveFiniteRates) {
  for (const std::string& name : learning_rate_names()) {
    for (int64_t total = 1; total < 8; ++total) {
      for (int64_t step = 0; step < total; ++step) {
        const double rate = LearningRate({.schedule = name, .peak = 0.3}, total).rate(step);
        EXPECT_TRUE(std::isfinite(rate) && rate >= 0 && rate <= 0.3 + 1e-12)
            << name << " " << step << "/" << total;
      }
    }
  }
}

TEST(LearningRate, NamesWhatThereIs) {
  try {
    LearningRate({.schedule = "linear"}, 10);
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "there is no learning-rate schedule 'linear': known are constant, step, cosine, one-cycle");
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
  EXPECT_THROW(LearningRate({.peak = 0}, 10), Error);
  EXPECT_THROW(LearningRate({.peak = NAN}, 10), Error);
  EXPECT_THROW(LearningRate({.peak = 0.1, .warmup_steps = -1}, 10), Error);
}

}  // namespace
}  // namespace antichain
