// VGG-19 in 16 GB. P. Jain, A. Jain, Nrusimhadevara, Gholami, Abbeel, Keutzer, Stoica, Gonzalez, "Checkmate:
// Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys 2020, trains it with at most one
// more forward, on at most 289 images.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "framework/backend.h"
#include "layers/conv2d.h"
#include "layers/cpu/backend.h"
#include "layers/flatten.h"
#include "layers/input.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"
#include "layers/softmax_cross_entropy.h"
#include "partition/search/stage_fitter.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/measure/bench.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/memory_need.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

constexpr int64_t limit_bytes = 16'000'000'000;
constexpr int images_of_checkmate = 289;

// Simonyan & Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015,
// table 1: filters, and convolutions before the next pool.
constexpr std::pair<int, int> column_e[] = {{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}};

Graph vgg19(int images) {
  Graph g("vgg19");
  NodeId x = input_images(g, "images", {images, 3, 224, 224});
  int index = 0;
  const auto name = [&] { return fmt::format("features.{}", index++); };
  for (const auto& [filters, times] : column_e) {
    for (int i = 0; i < times; ++i) {
      x = conv2d(g, name(), x, {.out = filters, .kernel = 3, .pad = 1});
      x = relu(g, name(), x);
    }
    x = max_pool(g, name(), x, {.kernel = 2, .stride = 2});
  }
  x = flatten(g, "flatten", x);
  x = relu(g, "classifier.1", linear(g, "classifier.0", x, {.out = 4096}));
  x = relu(g, "classifier.4", linear(g, "classifier.3", x, {.out = 4096}));
  x = linear(g, "classifier.6", x, {.out = 1000});
  softmax_cross_entropy(g, "loss", x, input_labels(g, "labels", images));
  return g;
}

// Lies in one stage, with what it recomputes so that its tensors fit the limit in least time.
struct PlannedVgg19 {
  PlannedVgg19(int images, int64_t bytes)
      : graph(lower(vgg19(images), backend("cpu"))),
        profile(test::priced_by_flops(unpriced(graph, "cpu"))),
        plan(one_stage(profile)) {
    const StageFitter fitter(profile, false);
    PlanStage& stage = plan.stages[0];
    least_bytes = fitter.least(stage.nodes, {.in_flight = 1}).bytes;
    const auto& choice = fitter.fit(stage.nodes, {.in_flight = 1, .memory_bytes = bytes}).choice;
    fits = choice.has_value();
    if (fits) stage.recomputed = choice->of(stage.nodes);
  }
  Schedule schedule() const { return make_schedule(profile, plan, Policy::one_f_one_b, 1); }
  MemoryNeed need() const { return step_need(graph, *default_optimiser(), profile, plan, schedule(), 0); }

  const Graph graph;
  const Profile profile;
  Plan plan;
  int64_t least_bytes = 0;
  bool fits = false;
};

// What the engine's kernels work in is part of it.
TEST(Vgg19Memory, HasRoomForTheImagesOfTheOptimum) {
  register_cpu_backend();
  const PlannedVgg19 tensors(images_of_checkmate, limit_bytes);
  ASSERT_TRUE(tensors.fits);
  const PlannedVgg19 planned(images_of_checkmate, limit_bytes - tensors.need().step.scratch);
  ASSERT_TRUE(planned.fits) << planned.least_bytes << " " << tensors.need().step.scratch;
  const MemoryShares step = planned.need().step;
  EXPECT_LE(step.bytes(), limit_bytes) << "of these scratch: " << step.scratch;
}

// The largest batch that is planned for 4 GB is run.
TEST(LargeVgg19Memory, IsMeasuredAsPredicted) {
  constexpr int64_t bytes = 4'000'000'000;
  if (available_memory_bytes() < 5 * bytes / 4)
    GTEST_SKIP() << "it takes 4 GB, and as much again is not left";
  register_cpu_backend();
  int images = 32;
  const auto for_tensors = [&](int of) { return bytes - PlannedVgg19(of, 0).need().step.scratch; };
  while (PlannedVgg19(images + 1, for_tensors(images + 1)).fits) ++images;
  const PlannedVgg19 planned(images, for_tensors(images));
  const MemoryNeed need = planned.need();
  Context context(backend("cpu"), 2);
  backend("cpu").enter(context);
  return_free_memory();
  forget_peak();
  const int64_t before = resident_bytes();
  RankModel model(planned.graph, planned.plan.stages[0].nodes, context, /*seed=*/0, default_optimiser());
  Bench(model, planned.profile, planned.plan, planned.schedule()).step();
  const int64_t measured = peak_resident_bytes() - before;
  fmt::print("{} images: planned {}, step {}, scratch {}, in all {}, measured {} bytes\n", images,
             planned.least_bytes, need.step.bytes(), need.step.scratch, need.total(), measured);
  EXPECT_LE(need.step.bytes(), bytes);
  EXPECT_NEAR(double(measured) / double(need.step.bytes()), 1, 0.05);
}

}  // namespace
}  // namespace antichain
