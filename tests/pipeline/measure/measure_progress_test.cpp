// These tests say how far the profiler is: forward and backward of each node, the warm-up, and how many
// repeats will follow.
#include "pipeline/measure/measure_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "layers/cpu/backend.h"
#include "models/model.h"
#include "pipeline/measure/profiler.h"
#include "pipeline/transport/solo_transport.h"

namespace antichain {
namespace {

TEST(MeasureProgress, GoesThroughAStep) {
  EXPECT_DOUBLE_EQ(share_of_step(0, true, 0, 4, 2), 1.0 / 24);
  EXPECT_DOUBLE_EQ(share_of_step(3, true, 0, 4, 2), 4.0 / 24);
  EXPECT_DOUBLE_EQ(share_of_step(3, false, 0, 4, 2), 6.0 / 24) << "backward begins at the last node";
  EXPECT_DOUBLE_EQ(share_of_step(0, false, 0, 4, 2), 0.5);
  EXPECT_DOUBLE_EQ(share_of_step(0, false, 1, 4, 2), 1);
}

TEST(MeasureProgress, FitsRepeatsIntoTheBudget) {
  EXPECT_EQ(fitting_repeats(3, 0.2, 5, 50), 15);
  EXPECT_EQ(fitting_repeats(3, 2, 5, 50), 5) << "these at least";
  EXPECT_EQ(fitting_repeats(3, 0, 5, 50), 50);
}

TEST(MeasureProgress, ExtrapolatesTheFirstStep) {
  const RepeatOptions options{.budget_s = 3, .least = 5, .most = 50};
  // Half a step took 1 s: six steps of 2 s.
  const MeasureProgress early = progress_after(0.5, 0, 1, options);
  EXPECT_DOUBLE_EQ(early.share, 0.5 / 6);
  EXPECT_DOUBLE_EQ(early.left_s, 11);
  const MeasureProgress late = progress_after(4, 5, 8, options);
  EXPECT_DOUBLE_EQ(late.share, 0.8);
  EXPECT_DOUBLE_EQ(late.left_s, 2);
  EXPECT_DOUBLE_EQ(progress_after(0, 0, 1, options).left_s, 3);
}

TEST(MeasureProgress, OfAProfileGrowsFromNodeToNode) {
  register_cpu_backend();
  Context context(backend("cpu"), 1);
  const Graph graph = lower(make_model("resnet20", {.microbatch = 1}), backend("cpu"));
  SoloTransport alone;
  std::vector<double> shares;
  std::string last;
  const auto listen = [&](const MeasureProgress& p) { shares.push_back(p.share), last = p.node; };
  measure(graph, context, alone,
          {.microbatches = 2, .budget_s = 0.01, .min_repeats = 2, .max_repeats = 2, .progress = listen});
  ASSERT_GT(shares.size(), size_t(graph.size()));
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_GT(shares.back(), 0.98);
  EXPECT_LE(shares.back(), 1);
  EXPECT_EQ(last, "conv1") << "backward ends where forward begins";
}

}  // namespace
}  // namespace antichain
