// Engines race on stand-ins whose kernels take a known time (fake_cuda.h).
#include "pipeline/measure/compare_engines.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/alternatives.h"
#include "framework/error.h"
#include "models/model.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_gpu.h"

namespace antichain::test {
namespace {

class Tune : public ::testing::Test {
 protected:
  void SetUp() override { fake_cuda::reset(1); }
  void TearDown() override { fake_cuda::reset(1); }
};

// Convolutions have engines of 3 ms, 1 ms and 40 ms, the first by rule; those with 32 filters only the first.
std::vector<PassAlternatives> engines(const Op& op, std::span<const Shape> x, int& slow_runs) {
  std::vector<PassAlternatives> passes;
  if (op.type() != "conv2d") return passes;
  for (const char* name : {"forward", "input gradient", "weight gradient"}) {
    PassAlternatives pass{.pass = name, .operands = {{x[0]}, {{4}, DType::bf16}}};
    for (const int ms : {3, 1, 40})
      pass.all.push_back(
          {std::to_string(ms) + " ms", 64 * ms, [ms, &slow_runs](Context& context, auto t, std::byte* space) {
             EXPECT_EQ(t.size(), 2u);
             EXPECT_NE(space, nullptr);
             slow_runs += int(ms == 40);
             fake_cuda::launch(
                 static_cast<const FakeGpu&>(context.backend()).stream(), [] {}, ms * 1e-3);
           }});
    if (op.infer(x).y.shape[1] == 32) pass.all.resize(1);
    passes.push_back(std::move(pass));
  }
  return passes;
}

TEST_F(Tune, TellsTheFastestBesideTheRules) {
  FakeGpu& gpu = FakeGpu::the();
  int slow_runs = 0;
  register_alternatives("fake_gpu", [&](const Op& op, std::span<const Shape> x, Precision) {
    return engines(op, x, slow_runs);
  });
  fake_cuda::keep_time(1e-4);
  Context context(gpu);
  gpu.enter(context);
  const Graph graph = lower(make_model("resnet20", {.microbatch = 1}), gpu);
  Progress activity;
  const std::vector<TunedPass> tuned = compare_engines(graph, context, activity);

  // conv1, which needs no input gradient; 3 x 3 of 16, 32 and 64 channels, two that halve the image, and two
  // beside those.
  ASSERT_EQ(tuned.size(), 2u + 7 * 3);
  EXPECT_EQ(tuned[0].node, "conv1");
  EXPECT_EQ(tuned[0].pass, "forward");
  EXPECT_EQ(tuned[1].pass, "weight gradient");
  int nodes = 0;
  for (const TunedPass& p : tuned) {
    nodes += p.nodes;
    EXPECT_EQ(p.by_rule().engine, "3 ms");
    EXPECT_NEAR(p.by_rule().seconds, 3e-3, 1e-6);
    EXPECT_EQ(p.fastest().engine, p.engines.size() == 1 ? "3 ms" : "1 ms");
    if (p.engines.size() == 1) continue;
    EXPECT_NEAR(p.fastest().seconds, 1e-3, 1e-6);
    EXPECT_NEAR(p.engines[2].seconds, 40e-3, 1e-6);
  }
  EXPECT_EQ(nodes, 21 * 3 - 1);
  EXPECT_EQ(slow_runs, 2 * (2 + 4 * 3)) << "what is hopelessly slow is run to warm up, and timed once";
}

// The rule's engine of the first kind of node fails; elsewhere another one.
TEST_F(Tune, GoesOnBehindAnEngineThatFails) {
  FakeGpu& gpu = FakeGpu::the();
  register_alternatives("fake_gpu", [&](const Op& op, std::span<const Shape> x, Precision) {
    int slow_runs = 0;
    std::vector<PassAlternatives> passes = engines(op, x, slow_runs);
    for (PassAlternatives& pass : passes) {
      const auto fail = [](Context&, auto, auto) { throw Error("no such kernel", "leave it out"); };
      for (size_t i = 0; i < pass.all.size(); ++i) {
        if (i == (x[0][1] == 3 ? 0 : 1)) pass.all[i].run = fail;
        if (i == 2) pass.all.resize(2);
      }
    }
    return passes;
  });
  fake_cuda::keep_time(1e-4);
  Context context(gpu);
  gpu.enter(context);
  Progress activity;
  const std::vector<TunedPass> tuned =
      compare_engines(lower(make_model("resnet20", {.microbatch = 1}), gpu), context, activity);
  ASSERT_EQ(tuned.size(), 2u + 7 * 3);
  EXPECT_NE(tuned[0].by_rule().failure.find("no such kernel"), std::string::npos);
  EXPECT_TRUE(std::isinf(tuned[0].by_rule().seconds));
  EXPECT_EQ(tuned[0].fastest().engine, "1 ms");
  EXPECT_EQ(tuned[2].by_rule().failure, "");
  EXPECT_EQ(tuned[2].fastest().engine, "3 ms") << "the faster one fails";
  EXPECT_NE(tuned[2].engines[1].failure, "");
}

TEST_F(Tune, RefusesADeviceWithOneEngine) {
  FakeGpu::the();
  expect_error([] { check_tunable(backend("cpu")); }, {"cpu", "one engine", "cuda"});
}

}  // namespace
}  // namespace antichain::test
