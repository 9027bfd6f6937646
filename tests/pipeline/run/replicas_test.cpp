// Stages with replicas learn what one device learns but for the rounding of sums in another order. They learn
// the same bits whenever, over whatever and in whichever order of actions they do it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "framework/files/checkpoint_folder.h"
#include "partition/planners/planner.h"
#include "pipeline/program/parts.h"
#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

using namespace test;
using Counts = std::vector<int>;  // of replicas, by stage

MakePlan cut_for(const Counts& replicas) {
  return [replicas](const Profile& profile, int) {
    const PlanOptions options{.stages = int(replicas.size()), .cluster = one_link({.bytes_per_s = 1e9})};
    return test::replicated(plan_antichain(profile, options), replicas);
  };
}

TrainingRun train(const TrainingCase& c, const Counts& replicas, Policy policy = Policy::one_f_one_b) {
  const int ranks = std::accumulate(replicas.begin(), replicas.end(), 0);
  return train_on_threads(c, ranks, cut_for(replicas), by_policy(policy));
}

double norm(std::span<const float> x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// Returns how far the second run's tensors are from the first's, as a share of their length, for those whose
// name has `part`.
double distance(const Weights& a, const Weights& b, const std::string& part) {
  double most = 0;
  for (const NamedTensor& x : a) {
    if (x.name.find(part) == std::string::npos || !x.is_float()) continue;
    const auto &from = std::get<0>(x.values), &to = std::get<0>(b.find(x.name)->values);
    std::vector<float> difference(from.size());
    std::ranges::transform(from, to, difference.begin(), std::minus());
    most = std::max(most, norm(difference) / std::max(norm(from), 1e-3));
  }
  return most;
}

struct ReplicaCase {
  const char* model;
  Counts replicas;
  int microbatches = 4;
};
void PrintTo(const ReplicaCase& c, std::ostream* out) {
  *out << fmt::format("{} on {} of {}", c.model, fmt::join(c.replicas, " + "), c.microbatches);
}
class ReplicatedStages : public ::testing::TestWithParam<ReplicaCase> {};

TEST_P(ReplicatedStages, LearnWhatOneDeviceLearnsWithinRounding) {
  const auto& [model, replicas, microbatches] = GetParam();
  TrainingCase c{.model = model, .microbatch = 2, .microbatches = microbatches, .steps = 1, .rate = 0.01f};
  const TrainingRun one = train_on_threads(c, 1, cut_for({1}), by_policy(Policy::one_f_one_b));
  const TrainingRun many = train(c, replicas);
  // Before the first update every micro-batch has the same bits everywhere; only sums over them have another
  // order.
  EXPECT_NEAR(one.losses[0] / many.losses[0], 1, 1e-14);
  EXPECT_EQ(distance(one.weights, many.weights, "running_"), 0)
      << "absorbed in micro-batch order, all of them";
  EXPECT_LT(distance(one.weights, many.weights, ""), 1e-6);
  c.steps = 3;
  const TrainingRun later_one = train_on_threads(c, 1, cut_for({1}), by_policy(Policy::one_f_one_b));
  const TrainingRun later = train(c, replicas);
  EXPECT_NEAR(later_one.losses[2] / later.losses[2], 1, 1e-4);
  expect_same(later, train(c, replicas), "again");
  expect_same(later, train(c, replicas, Policy::gpipe), "in GPipe's order");
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ReplicatedStages,
    ::testing::Values(ReplicaCase{"every_edge", {2}}, ReplicaCase{"every_edge", {4}},
                      ReplicaCase{"every_edge", {2, 1}}, ReplicaCase{"every_edge", {1, 2}, 5},
                      ReplicaCase{"every_edge", {2, 3}, 7}, ReplicaCase{"every_edge", {3, 1, 2}, 8},
                      ReplicaCase{"every_edge", {1, 2, 1}}, ReplicaCase{"repeated", {3, 2}, 5},
                      ReplicaCase{"siamese", {2, 1}}, ReplicaCase{"tied", {2, 1}},
                      ReplicaCase{"siamese", {2, 3}, 7}, ReplicaCase{"unrolled", {3, 1, 2}, 8}));
INSTANTIATE_TEST_SUITE_P(Large, ReplicatedStages,
                         ::testing::Values(ReplicaCase{"resnet20", {3, 1, 2}, 8},
                                           ReplicaCase{"vgg16", {2, 1}, 3}));

// A parameter's gradient is added up within a replica and then over the replicas: where the network is cut
// plays no part.
TEST(ReplicasOfAllStages, GiveTheSameBitsWhateverTheCut) {
  const TrainingCase c{.microbatches = 5, .steps = 3};
  const TrainingRun whole = train(c, {2});
  expect_same(whole, train(c, {2, 2}), "two stages");
  expect_same(whole, train(c, {2, 2, 2}), "three stages");
  EXPECT_NE(whole.state, train(c, {1}).state) << "the order of adding differs from one device's";
}

TEST(ReplicasOfAllStages, EvaluateEachSampleOnce) {
  const TrainingCase c{.epoch = true};
  const TrainingRun one = train(c, {1}), many = train(c, {2, 1});
  EXPECT_GE(one.test_accuracy, 0);
  EXPECT_EQ(one.test_accuracy, many.test_accuracy) << "of predictions that differ by rounding";
}

TEST(ReplicasOfAStage, WriteOneFileAndGoOnFromIt) {
  const TemporaryFolder folder;
  TrainingCase c{.microbatches = 3, .steps = 3, .rate = 0.01f, .epochs = 2};
  const TrainingRun whole = train(c, {2, 1});
  c.checkpoint = folder.str();
  c.until = 4;
  train(c, {2, 1});
  EXPECT_EQ(verify_checkpoint(CheckpointFolder(c.checkpoint).of_step(4)).files.size(), 2u) << "one a stage";
  c.until = 0;
  const TrainingRun rest = train(c, {2, 1});
  EXPECT_EQ(rest.first_step, 4);
  EXPECT_EQ(rest.state, whole.state);
  EXPECT_EQ(rest.test_accuracy, whole.test_accuracy);
}

class BadNumbersOfReplicas : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("ANTICHAIN_FAULT"); }
  static TrainingRun run(const Counts& replicas, OnNan on_nan) { return train({.on_nan = on_nan}, replicas); }
};

TEST_F(BadNumbersOfReplicas, AreTracedToTheOneThatMadeThem) {
  ::setenv("ANTICHAIN_FAULT", "nan:rank=-1:step=2:microbatch=2:gradient:wide", 1);
  const std::string sentence = "step 3, micro-batch 2: the gradient that node wide ";
  expect_error([] { run({1}, OnNan::abort); }, {sentence + "(rank 0)"});
  expect_error([] { run({2, 1}, OnNan::abort); }, {sentence + "(rank 0)"});
  expect_error([] { run({3, 1}, OnNan::abort); }, {sentence + "(rank 2)"});
}

TEST_F(BadNumbersOfReplicas, AreSkippedByAll) {
  ::setenv("ANTICHAIN_FAULT", "nan:rank=-1:step=2:microbatch=1:activation:narrow", 1);
  const TrainingRun skipped = run({2, 1}, OnNan::skip);
  ASSERT_EQ(skipped.losses.size(), 5u);
  for (const size_t step : {0, 1, 3, 4}) EXPECT_TRUE(std::isfinite(skipped.losses[step])) << step;
  EXPECT_FALSE(std::isfinite(skipped.losses[2]));
  EXPECT_EQ(skipped.state, run({2, 1}, OnNan::skip).state);
}

TEST(EqualPart, CoversEveryByteOnce) {
  for (const int64_t bytes : {0, 64, 128, 640, 64 * 1001})
    for (const int n : {1, 2, 3, 7}) {
      int64_t end = 0;
      for (int i = 0; i < n; ++i) {
        const ByteRange part = equal_part(bytes, i, n);
        EXPECT_EQ(part.begin_bytes, end);
        EXPECT_LE(part.bytes, (bytes / 64 + n - 1) / n * 64);
        end += part.bytes;
      }
      EXPECT_EQ(end, bytes);
    }
}

}  // namespace
}  // namespace antichain
