// Figures of plans are compared with sums done by hand.
#include "app/report/plan_figures.h"

#include <gtest/gtest.h>

#include "app/report/plan_report.h"

namespace antichain {
namespace {

constexpr int64_t mib = 1 << 20;

// image ─▶ a ─▶ b ─▶ c, and a ─▶ c: 3, 5 and 4 ms, a third of it forward.
Profile network() {
  const auto node = [](std::string name, std::vector<int> inputs, double ms, int64_t output, int64_t params) {
    return ProfileNode{.name = std::move(name),
                       .op = "conv2d",
                       .inputs = std::move(inputs),
                       .needs_gradient = true,
                       .cost = {.forward_s = ms * 1e-3 / 3,
                                .backward_input_s = ms * 2e-3 / 3,
                                .output_bytes = output,
                                .param_bytes = params,
                                .keeps_output = true}};
  };
  Profile profile{.model = "three", .nodes = {}};
  profile.nodes.push_back({.name = "image", .op = "input", .role = Role::input});
  profile.nodes.push_back(node("a", {0}, 3, mib, 0));
  profile.nodes.push_back(node("b", {1}, 5, 2 * mib, 4 * mib));
  profile.nodes.push_back(node("c", {2, 1}, 4, 8 * mib, 0));
  return profile;
}

Plan three_stages() {
  return {
      .stages = {{.nodes = {1}, .ranks = {0}}, {.nodes = {2}, .ranks = {1}}, {.nodes = {3}, .ranks = {2}}}};
}

TEST(PlanFigures, TensorsCountAtEveryBoundaryTheyCross) {
  const PlanFigures all = figures(three_stages(), network(), {.stages = 3});
  EXPECT_EQ(all.stages[0].boundary.bytes, mib);
  EXPECT_EQ(all.stages[1].boundary.bytes, 3 * mib) << "a goes on to c beside b";
  EXPECT_EQ(all.stages[2].boundary.bytes, 0);
  EXPECT_EQ(all.boundary_bytes(), 4 * mib);
  EXPECT_EQ(all.memory_bytes(), 16 * mib) << "b: three times 4 MiB of weights, 2 MiB of two micro-batches";
  EXPECT_NEAR(all.stages[1].forward_s, 5e-3 / 3, 1e-15);  // 1e-15: double's rounding of milliseconds
  EXPECT_NEAR(all.stages[1].backward_s, 10e-3 / 3, 1e-15);
}

// The planner knows how many micro-batches the schedule has in flight.
TEST(PlanFigures, MemoryIsThatOfThePlan) {
  Plan plan = three_stages();
  plan.stages[1].memory_bytes = 30 * mib;
  EXPECT_EQ(figures(plan, network(), {.stages = 3}).memory_bytes(), 30 * mib);
}

TEST(PlanFigures, ImbalanceIsTheSlowestOverTheMean) {
  const PlanFigures all = figures(three_stages(), network(), {.stages = 3});
  EXPECT_NEAR(all.slowest_s(), 5e-3, 1e-9);  // 1e-9: nodes are rounded to whole ns
  EXPECT_NEAR(all.imbalance(), 5. / 4, 1e-6);
}

TEST(PlanFigures, ReplicasShareMicroBatchesAndAddUpGradients) {
  Plan plan = three_stages();
  plan.stages[1].ranks = {1, 2};
  plan.stages[2].ranks = {3};
  // 2 x 4 MiB over 4 MiB/ms a step, a quarter of it per micro-batch: (5 + 0.5) / 2 ms.
  const PlanOptions options{.cluster = one_link({.bytes_per_s = 4e3 * mib}), .microbatches = 4};
  const PlanFigures all = figures(plan, network(), options);
  EXPECT_EQ(all.stages[1].devices, 2);
  EXPECT_NEAR(double(all.stages[1].stage_ns), 2.75e6, 10);           // a few nodes, each rounded to 1 ns
  EXPECT_NEAR(all.imbalance(), 4 / ((3 + 2 * 2.75 + 4) / 4), 1e-5);  // of devices, not of stages
}

TEST(PlanFigures, DevicesHaveTheirSpeedAndMemory) {
  Plan plan = three_stages();
  plan.stages[0].devices = {2};
  plan.stages[1].devices = {0};
  plan.stages[2].devices = {1};
  PlanOptions options{.stages = 3, .cluster = equal_devices(3, {}, 10 * mib)};
  options.cluster.devices[0] = {.speed = 2.5, .memory_bytes = 20 * mib};
  options.cluster.devices[1].memory_bytes = 0;
  const PlanFigures all = figures(plan, network(), options);
  EXPECT_NEAR(all.slowest_s(), 4e-3, 1e-9) << "5 ms at 2.5 are 2 ms";
  EXPECT_EQ(all.stages[0].limit_bytes, 10 * mib);
  EXPECT_EQ(all.stages[1].limit_bytes, 20 * mib);
  EXPECT_EQ(all.stages[2].limit_bytes, 0);
  // 32 micro-batches of 12 ms, on the fastest device alone.
  EXPECT_NEAR(speedup(12e-3 * 32 / 2.5, network(), options), 1, 1e-9);
  EXPECT_EQ(one_device(options.cluster), "the fastest device");
  EXPECT_EQ(one_device(equal_devices(2, {})), "one device");
}

TEST(PlanReport, RangesAreShort) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({3}), "3");
  EXPECT_EQ(ranges({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(ranges({4, 2}), "4,2") << "devices need not ascend";
}

}  // namespace
}  // namespace antichain
