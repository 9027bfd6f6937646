// Training in bf16 stays beside that in float32, and what mixed precision keeps in float32 is float32.
#include <gtest/gtest.h>

#include <algorithm>

#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"
#include "models/model.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/rank_model.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

using namespace test;

class Bf16Training : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::has_bf16()) GTEST_SKIP() << "no AVX512_BF16";
  }
};

// Each value is off by up to 2^-9 of itself, at random, in each of some 40 tensors on the way to the loss:
// √40 · 2^-9 is about 1 %. A wrong weight copy, one step old, or an unscaled tensor, changes far more.
TEST_F(Bf16Training, LossesStayBesideThoseOfFloat32) {
  TrainingCase c{.model = "resnet20", .microbatch = 8, .microbatches = 2, .steps = 6, .rate = 0.02f};
  const TrainingRun exact = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  c.precision = Precision::bf16;
  const TrainingRun rounded = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  const auto [least, most] = std::ranges::minmax(exact.losses);
  ASSERT_GT(most - least, 0.1) << "the weights move";
  for (size_t i = 0; i < exact.losses.size(); ++i) {
    EXPECT_NE(rounded.losses[i], exact.losses[i]);
    EXPECT_NEAR(rounded.losses[i], exact.losses[i], 0.02 * exact.losses[i]) << "step " << i;
  }
}

TEST_F(Bf16Training, HalvesWhatCrossesACutAndKeepsWeightsInFloat32) {
  register_cpu_backend();
  const auto network = [](Precision precision) {
    return lower(make_model("resnet20", {.microbatch = 2}), backend("cpu"), precision);
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
