// Where a kernel takes its output's gradient in two terms, the last one is left beside the sum, and lives
// until that kernel's backward.
#include <gtest/gtest.h>

#include "framework/backend.h"
#include "models/model.h"
#include "pipeline/program/program.h"
#include "pipeline/schedule/schedule_csv.h"
#include "tests/layers/cuda_on_host/backend.h"

namespace antichain {
namespace {

struct Terms {
  int whole = 0, parted = 0;  // by form of the backward
};

int terms_left(const Graph& graph, const BackwardTensors& memory) {
  int left = 0, terms = 0;
  for (const auto& [id, contributions] : memory.contributions)
    for (const Contribution& c : contributions) left += c.left;
  for (const auto& [id, gradient] : memory.gradient) {
    if (gradient.term == no_buffer) continue;
    ++terms;
    EXPECT_EQ(graph[id].op->type(), "batch_norm");
    EXPECT_NE(gradient.term, gradient.sum);
  }
  EXPECT_EQ(left, terms);
  return left;
}

// Returns how many sums of ResNet-20 on one rank leave their last term, in this order of actions.
Terms terms_left(const std::string& order) {
  const Backend& device = backend("cuda_on_host");
  const Graph graph = lower(make_model("resnet20", {.microbatch = 1}), device);
  const Profile profile = unpriced(graph, device.description());
  const Plan plan = one_stage(profile);
  const Schedule schedule = make_schedule(profile, plan, parse_csv(order, "a test"), "a test");
  const Program program = compile(schedule, profile, plan, step_network(graph), Mode::train);
  const StageTensors& tensors = program.ranks[0].stages.at(0);
  return {terms_left(graph, tensors.whole), terms_left(graph, tensors.parted)};
}

constexpr int blocks = 9;  // their inputs are read by a convolution and by a shortcut

TEST(LeftTerm, IsThatOfEachResidualOfAResNet) {
  register_cuda_on_host();
  EXPECT_EQ(terms_left("0F0,0B0,0F1,0B1").whole, blocks);
}

// The sum is kept for the weight half.
TEST(LeftTerm, IsAddedWhereTheSumOutlivesTheBackward) {
  register_cuda_on_host();
  EXPECT_EQ(terms_left("0F0,0I0,0W0,0F1,0I1,0W1").parted, 0);
}

// Only the backwards that are parted need the whole sum.
TEST(LeftTerm, IsThatOfWholeBackwardsBesidePartedOnes) {
  register_cuda_on_host();
  const Terms left = terms_left("0F0,0I0,0W0,0F1,0B1");
  EXPECT_EQ(left.whole, blocks);
  EXPECT_EQ(left.parted, 0);
}

}  // namespace
}  // namespace antichain
