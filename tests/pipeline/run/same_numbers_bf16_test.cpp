// Promise 1 holds in bf16: what crosses a cut is stored as it is within a stage, and terms of a gradient are
// rounded before they are added wherever they come from, so the cut changes no bit. What mixed precision
// keeps in float32 is float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"
#include "models/model.h"
#include "partition/planners/planner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/rank_model.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

using namespace test;

class SameNumbersInBf16 : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!cpu::has_bf16()) GTEST_SKIP() << "no AVX512_BF16";
  }
  const MakeSchedule one_f_one_b = by_policy(Policy::one_f_one_b), gpipe = by_policy(Policy::gpipe);
};

TEST_P(SameNumbersInBf16, WhateverTheCut) {
  TrainingCase c{.model = GetParam(), .microbatch = 2, .microbatches = 4, .steps = 2};
  c.precision = Precision::bf16;
  const TrainingRun one = train_on_threads(c, 1, by_antichains, one_f_one_b);
  ASSERT_EQ(one.losses.size(), 2u);
  ASSERT_NE(one.losses[0], one.losses[1]);
  expect_same(one, train_on_threads(c, 2, by_antichains, one_f_one_b), "1f1b, 2");
  expect_same(one, train_on_threads(c, 3, by_antichains, gpipe), "gpipe, 3");
  expect_same(one, train_on_threads(c, 4, at_random(5), one_f_one_b), "random cuts");
}

// ResNet-20 has skip connections, DenseNet-121 concatenations with many consumers, AlexNet dropout and linear
// layers, and ResNeXt-50 narrow groups.
INSTANTIATE_TEST_SUITE_P(OfEveryEdge, SameNumbersInBf16, ::testing::Values("every_edge"));
INSTANTIATE_TEST_SUITE_P(Large, SameNumbersInBf16,
                         ::testing::Values("resnet20", "densenet121", "alexnet", "resnext50"));

class Bf16Training : public SameNumbersInBf16 {};
INSTANTIATE_TEST_SUITE_P(Of, Bf16Training, ::testing::Values("resnet20"));

// Each value is off by up to 2^-9 of itself, at random, in each of some 40 tensors on the way to the loss:
// √40 · 2^-9 is about 1 %. A wrong weight copy, one step old, or an unscaled tensor, changes far more.
TEST_P(Bf16Training, LossesStayBesideThoseOfFloat32) {
  TrainingCase c{.model = GetParam(), .microbatch = 8, .microbatches = 2, .steps = 6, .rate = 0.02f};
  const TrainingRun exact = train_on_threads(c, 1, by_antichains, one_f_one_b);
  c.precision = Precision::bf16;
  const TrainingRun rounded = train_on_threads(c, 1, by_antichains, one_f_one_b);
  const auto [least, most] = std::ranges::minmax(exact.losses);
  ASSERT_GT(most - least, 0.1) << "the weights move";
  for (size_t i = 0; i < exact.losses.size(); ++i) {
    EXPECT_NE(rounded.losses[i], exact.losses[i]);
    EXPECT_NEAR(rounded.losses[i], exact.losses[i], 0.02 * exact.losses[i]) << "step " << i;
  }
}

// A restored stage has to make its bf16 copies of the weights anew.
TEST_P(Bf16Training, GoesOnFromACheckpointAsIfItHadNotStopped) {
  TrainingCase c{.microbatch = 2, .microbatches = 2, .steps = 4, .epochs = 1};
  c.precision = Precision::bf16;
  const TrainingRun whole = train_on_threads(c, 2, by_antichains, one_f_one_b);
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "bf16_run";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  c.checkpoint = folder.string();
  c.until = 2;
  train_on_threads(c, 1, by_antichains, one_f_one_b);
  c.until = 0;
  const TrainingRun rest = train_on_threads(c, 2, by_antichains, one_f_one_b);
  EXPECT_EQ(rest.first_step, 2);
  EXPECT_EQ(rest.losses, std::vector(whole.losses.begin() + 2, whole.losses.end()));
  EXPECT_EQ(rest.state, whole.state);
  std::filesystem::remove_all(folder);
}

TEST_P(Bf16Training, HalvesWhatCrossesACutAndKeepsWeightsInFloat32) {
  register_cpu_backend();
  const auto network = [](Precision precision) {
    return lower(make_model(GetParam(), {.microbatch = 2}), backend("cpu"), precision);
  };
  const Graph exact = network(Precision::float32), rounded = network(Precision::bf16);
  EXPECT_NE(exact.hash(), rounded.hash());
  const Profile wide = unpriced(exact, ""), narrow = unpriced(rounded, "");
  EXPECT_EQ(narrow.precision, Precision::bf16);
  for (const char* node : {"conv1", "layer1.0.bn2", "layer3.2.conv2", "fc"}) {
    const auto cost = [&](const Graph& graph, const Profile& profile) {
      return profile.nodes[size_t(graph.find(node))].cost;
    };
    EXPECT_EQ(2 * cost(rounded, narrow).output_bytes, cost(exact, wide).output_bytes) << node;
    EXPECT_EQ(cost(rounded, narrow).param_bytes, cost(exact, wide).param_bytes) << node;
    EXPECT_EQ(cost(exact, wide).prepared_bytes, 0) << node;
    const bool multiplies = std::string_view(node).find("bn") == std::string_view::npos;
    EXPECT_EQ(2 * cost(rounded, narrow).prepared_bytes >= cost(rounded, narrow).param_bytes, multiplies)
        << node;
  }
  Context context(backend("cpu"));
  const NodeId conv = rounded.find("layer1.0.conv1");
  const RankModel model(rounded, {conv}, context, 0);
  EXPECT_EQ(model[conv].params[0].dtype(), DType::f32);
  EXPECT_EQ(model[conv].gradients[0].dtype(), DType::f32);
  EXPECT_EQ(rounded[rounded.find("loss")].output().dtype, DType::f32);
}

}  // namespace
}  // namespace antichain
