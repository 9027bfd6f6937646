// Tests whole runs with AdamW, clipped gradients and averaged weights: each of the three does what it says,
// on replicas as well. (run/same_bits_test.cpp has their bits on any number of stages.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <variant>

#include "framework/adamw.h"
#include "framework/averaged.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/files/hdf5.h"
#include "framework/sgd.h"
#include "pipeline/run/gradient_norm.h"
#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/train/checkpoint_contents.h"

namespace antichain::test {
namespace {

// The norms of these networks' first gradients are above 1, so this clips.
constexpr double clipped_to = 0.5;

TrainingCase adaptive_case() {
  TrainingCase c{.microbatch = 2, .microbatches = 4, .steps = 2, .rate = 1e-3f, .epochs = 1};
  c.clip_norm = clipped_to;
  c.optimiser = std::make_shared<Averaged>(std::make_shared<AdamW>(AdamWOptions{}), 0.9);
  return c;
}

struct SavedRun {
  TrainingRun run;
  std::map<std::string, NamedTensor> state;  // weights, buffers and slots
};

SavedRun run_and_save(TrainingCase c, int ranks, const MakePlan& plan, Policy policy) {
  const TemporaryFolder folder;
  c.checkpoint = folder.str() + "/run";
  std::filesystem::create_directory(c.checkpoint);
  SavedRun saved{train_on_threads(c, ranks, plan, by_policy(policy)), {}};
  saved.state = checkpoint_contents(CheckpointFolder(c.checkpoint).list().at(0));
  return saved;
}

// Two replicas of a stage hold the same gradients, which count once.
TEST(AdaptiveRunsOfReplicas, HaveTheSameBitsUnderEverySchedule) {
  const TrainingCase c = adaptive_case();
  const MakePlan replicated = [](const Profile& profile, int) {
    Plan plan = by_antichains(profile, 2);
    plan.stages[0].ranks = {0, 1}, plan.stages[1].ranks = {2};
    return plan;
  };
  const SavedRun first = run_and_save(c, 3, replicated, Policy::one_f_one_b),
                 other = run_and_save(c, 3, replicated, Policy::gpipe);
  EXPECT_EQ(first.run.losses, other.run.losses);
  EXPECT_TRUE(first.state == other.state);
  // Replicas add up in another order, so the loss differs by rounding: 2⁻²⁴ in each of some hundred terms.
  const SavedRun one = run_and_save(c, 1, by_antichains, Policy::one_f_one_b);
  ASSERT_EQ(first.run.losses.size(), one.run.losses.size());
  for (size_t i = 0; i < one.run.losses.size(); ++i)
    EXPECT_NEAR(first.run.losses[i], one.run.losses[i], 1e-4 * one.run.losses[i]);
}

TEST(ClipFactor, IsTheLargestNormOverTheNormOfAllNames) {
  EXPECT_FLOAT_EQ(clip_factor({{"a", 9}, {"b", 16}}, 1), 1 / (5 + 1e-6f));
  EXPECT_EQ(clip_factor({{"a", 9}, {"b", 16}}, 6), 1);
  EXPECT_EQ(clip_factor({}, 1), 1);
  EXPECT_EQ(clip_factor({{"a", 9}, {"b", NAN}}, 1), 1) << "whoever checks the numbers says so";
  EXPECT_EQ(clip_factor({{"a", 9}, {"b", INFINITY}}, 1), 1);
}

double moved(const Weights& from, const Weights& to) {
  double squares = 0;
  for (const NamedTensor& tensor : from) {
    if (tensor.name.find("running_") != std::string::npos ||
        !std::holds_alternative<std::vector<float>>(tensor.values))
      continue;
    const auto &a = std::get<0>(tensor.values), &b = std::get<0>(to.find(tensor.name)->values);
    for (size_t i = 0; i < a.size(); ++i) squares += std::pow(double(b[i]) - double(a[i]), 2);
  }
  return std::sqrt(squares);
}

// Plain descent moves by the rate times the gradient, so a clipped step is of a known length.
TEST(ClippedRuns, MoveByTheRateTimesTheLargestNorm) {
  TrainingCase c{.microbatch = 2, .microbatches = 4, .steps = 1};
  c.optimiser = std::make_shared<Sgd>(SgdOptions{.momentum = 0, .weight_decay = 0});
  const auto run = [&](float rate, double clip_norm, int stages) {
    c.rate = rate, c.clip_norm = clip_norm;
    return train_on_threads(c, stages, by_antichains, by_policy(Policy::one_f_one_b)).weights;
  };
  const Weights still = run(0, 0, 1);
  const double unclipped = moved(still, run(0.125f, 0, 1)) / 0.125;
  ASSERT_GT(unclipped, clipped_to) << "there is something to clip";
  // Weights round to 2⁻²⁴ of their size, which is below 1e-3 of what a step moves them by.
  EXPECT_NEAR(moved(still, run(0.125f, clipped_to, 3)) / 0.125, clipped_to, clipped_to * 1e-3);
  EXPECT_EQ(moved(run(0.125f, 0, 1), run(0.125f, 2 * unclipped, 2)), 0) << "nothing is clipped";
}

// The average of each step follows from the weights of all.
TEST(AveragedRuns, KeepTheAverageOfAllStepsAndEvaluateIt) {
  TrainingCase c = adaptive_case();
  c.steps = 1;
  c.rate = 0.05f;
  constexpr double decay = 0.75;
  const auto inner = std::make_shared<AdamW>(AdamWOptions{});
  c.optimiser = std::make_shared<Averaged>(inner, decay);
  c.epochs = 3;
  c.evaluate_every = 1;
  const TemporaryFolder folder;
  c.checkpoint = folder.str() + "/run";
  c.every_steps = 1;
  std::filesystem::create_directory(c.checkpoint);
  const TrainingRun run = train_on_threads(c, 2, by_antichains, by_policy(Policy::one_f_one_b));
  TrainingCase still = c;
  still.rate = 0, still.checkpoint = "", still.epochs = 1;
  const TrainingRun first = train_on_threads(still, 1, by_antichains, by_policy(Policy::one_f_one_b));
  std::vector<float> average = std::get<0>(first.weights.find("wide.weight")->values);  // the initial weights
  for (int64_t step = 1; step <= 3; ++step) {
    const std::string checkpoint = CheckpointFolder(c.checkpoint).of_step(step);
    for (const CheckpointFile& file : verify_checkpoint(checkpoint).files) {
      const std::vector<std::string> paths = {"wide.weight", "ema/wide.weight"};
      if (std::ranges::none_of(file.tensors, [&](const auto& t) { return t.path == paths[0]; })) continue;
      const auto tensors = read_hdf5(read_checkpoint_file(checkpoint, file), paths, file.name);
      const auto &w = std::get<0>(tensors[0].values), &e = std::get<0>(tensors[1].values);
      for (size_t i = 0; i < average.size(); ++i) {
        average[i] += float(1 - decay) * (w[i] - average[i]);
        ASSERT_FLOAT_EQ(e[i], average[i]) << "step " << step << ", number " << i;
      }
    }
  }
  // Training takes no notice of the average, and evaluation does.
  c.optimiser = inner, c.checkpoint = "";
  const TrainingRun plain = train_on_threads(c, 2, by_antichains, by_policy(Policy::one_f_one_b));
  EXPECT_EQ(plain.losses, run.losses);
  EXPECT_EQ(plain.state, run.state);
  EXPECT_NE(plain.test_losses, run.test_losses);
  c.optimiser = std::make_shared<Averaged>(inner, 1e-300);  // an average of the last step alone
  const TrainingRun last = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  ASSERT_EQ(last.test_losses.size(), plain.test_losses.size());
  for (size_t i = 0; i < last.test_losses.size(); ++i)  // e + (w − e) rounds
    EXPECT_NEAR(last.test_losses[i], plain.test_losses[i], 1e-4 * plain.test_losses[i]);
}

}  // namespace
}  // namespace antichain::test
