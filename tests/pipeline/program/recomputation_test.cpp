// A stage that recomputes runs forwards again when their tensors are wanted, and keeps what they begin from.
#include "pipeline/program/recomputation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "partition/plan/recompute.h"
#include "partition/plan/runtime_format.h"
#include "partition/plan/stage_cost.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/program/program.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

const NodeCost cost_of_each{.forward_s = 1,
                            .backward_input_s = 1,
                            .backward_weight_s = 1,
                            .output_bytes = 64,
                            .param_bytes = 4,
                            .stash_bytes = 128,
                            .keeps_output = true};

// Returns, by position, which positions run again before a backward, where the network is one stage. In a
// chain node n has position n − 2.
std::vector<std::vector<int>> runs_again(const Profile& profile, const std::vector<int>& recomputed) {
  std::vector<int> stage, position;
  for (int n = 0; n < int(profile.nodes.size()); ++n) {
    position.push_back(profile.nodes[size_t(n)].role == Role::input ? -1 : int(stage.size()));
    if (position.back() >= 0) stage.push_back(n);
  }
  const BackwardOrder order =
      backward_order(step_network(profile), stage, position, profile.consumers(), recomputed, 0);
  EXPECT_EQ(order.end, int(stage.size() + recomputed.size()));
  return order.again;
}

TEST(BackwardOrder, RunsASegmentBeforeTheFirstBackwardThatReadsIt) {
  // The backward of n4, at position 3, reads the output of n3.
  EXPECT_EQ(runs_again(chain(6, cost_of_each), {3, 4, 6}),
            (std::vector<std::vector<int>>{{}, {}, {}, {1, 2}, {}, {4}}));
}

TEST(BackwardOrder, RunsASegmentBeforeALaterOneThatBeginsFromIt) {
  Profile profile = chain(6, cost_of_each);
  profile.nodes[6].inputs.push_back(3);  // n5 reads n2
  EXPECT_EQ(runs_again(profile, {3, 6}), (std::vector<std::vector<int>>{{}, {}, {}, {}, {}, {1, 4}}));
}

struct OneStage {
  explicit OneStage(const Recomputation& asked) : plan(one_stage(profile)) {
    recompute(plan, profile, asked);
  }

  int64_t ring_bytes(const Policy& policy, int microbatches) const {
    const Schedule schedule = make_schedule(profile, plan, policy, microbatches);
    int64_t bytes = 0;
    const Program program = compile(schedule, profile, plan);
    for (const Buffer& buffer : program.ranks[0].buffers)
      if (!buffer.passing && buffer.content != Content::input) bytes += buffer.spec.bytes() * buffer.copies;
    return bytes;
  }

  const Profile profile = chain(6, cost_of_each);
  Plan plan;
};

// The loss keeps its stash and its output.
TEST(Recomputation, KeepsOnlyWhatItBeginsFrom) {
  const int64_t each = kept_bytes(cost_of_each);
  EXPECT_EQ(OneStage({}).ring_bytes(Policy::gpipe, 8), 8 * 6 * each);
  EXPECT_EQ(OneStage({.all = true}).ring_bytes(Policy::gpipe, 8), 8 * each);
  EXPECT_EQ(OneStage({.nodes = {"n2", "n3", "n5"}}).ring_bytes(Policy::gpipe, 8), 8 * 3 * each);
}

// Between its two halves a parted backward keeps what it computed again.
TEST(Recomputation, LastsUntilTheWeightHalf) {
  const int64_t each = kept_bytes(cost_of_each);
  const int64_t bytes = OneStage({.all = true}).ring_bytes(policy("zb-h1"), 8);
  EXPECT_GE(bytes, 6 * each);
  EXPECT_LT(bytes, 8 * 6 * each);
}

TEST(Recomputation, IsInThePlanItsPriceAndItsFile) {
  const OneStage all({.all = true}), none({}), some({.nodes = {"n2", "n3", "n5"}});
  EXPECT_EQ(all.plan.stages[0].recomputed.size(), 5u);
  const StageSum sum = sum_of(some.profile, some.plan.stages[0].nodes, some.plan.stages[0].recomputed);
  EXPECT_EQ(sum.backward_s, 6 * 2 + 3);
  EXPECT_EQ(sum.kept_bytes, 3 * kept_bytes(cost_of_each));
  // Two gradients are in flight beside the larger segment.
  EXPECT_EQ(sum.again_bytes, 2 * kept_bytes(cost_of_each) + 2 * cost_of_each.output_bytes);
  const std::string json = to_json(some.plan, some.profile);
  const Plan read = plan_from_json(json, "a test", some.profile);
  EXPECT_EQ(read.stages[0].recomputed, some.plan.stages[0].recomputed);
  EXPECT_EQ(to_json(read, some.profile), json);
  EXPECT_NE(plan_hash(some.plan), plan_hash(none.plan));
  EXPECT_EQ(to_json(none.plan, none.profile).find("recomputed"), std::string::npos);
}

// What a plan counts is what the program has, but for one gradient that may come later than it counts.
TEST(Recomputation, IsCountedAsTheProgramKeepsIt) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    Profile profile = chain(3 + trial % 5);
    int64_t largest = 0;
    for (size_t n = 2; n < profile.nodes.size(); ++n) {
      profile.nodes[n].cost = {.output_bytes = 64 + int64_t(random() % 1000),
                               .stash_bytes = int64_t(random() % 2 * (random() % 1000)),
                               .keeps_output = random() % 2 > 0};
      if (n > 2 && random() % 2 > 0) {
        profile.nodes[n].op = "relu";
        profile.nodes[n].cost.output_bytes = profile.nodes[n - 1].cost.output_bytes;
      }
      largest = std::max(largest, profile.nodes[n].cost.output_bytes);
    }
    profile.nodes.back().cost.output_bytes = 0;  // no backward has the loss's own
    Plan plan = one_stage(profile);
    for (const int n : plan.stages[0].nodes)
      if (profile.nodes[size_t(n)].role == Role::compute) plan.stages[0].recomputed.push_back(n);
    const int microbatches = 1 + trial % 3;
    const StageSum sum = sum_of(profile, plan.stages[0].nodes, plan.stages[0].recomputed);
    const int64_t counted = memory_bytes(sum, microbatches, 1);
    const int64_t kept =
        peak_memory_bytes(make_schedule(profile, plan, Policy::gpipe, microbatches), plan, profile)[0];
    EXPECT_GE(counted, kept) << trial;
    EXPECT_LE(counted, kept + largest) << trial;
  }
}

// Returns the bytes of gradients on their way through the backward of a chain of four nodes, whose third one
// is of this type.
int64_t gradient_bytes(const std::string& op, int second_size = 64) {
  Profile profile = chain(4, cost_of_each);
  profile.nodes[4].op = op;
  profile.nodes[3].cost.output_bytes = second_size;
  const Plan plan = one_stage(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 1);
  const Program program = compile(schedule, profile, plan);
  std::vector<Lifetime> lifetimes;
  for (const Buffer& buffer : program.ranks[0].buffers)
    if (buffer.content == Content::gradient) lifetimes.push_back(buffer.lifetime);
  int64_t bytes = 0;
  for (const Lifetime& of : lifetimes) bytes += of.bytes;
  return bytes;
}

TEST(GradientTensors, WriteElementwiseGradientsOverOneAnother) {
  EXPECT_EQ(gradient_bytes("conv2d"), 3 * 64);
  EXPECT_EQ(gradient_bytes("relu"), 2 * 64);
  EXPECT_EQ(gradient_bytes("relu", 128), 4 * 64) << "only tensors of one size";
}

// One stage is busy for all forwards, those that run again, and all backwards.
TEST(Recomputation, IsInTheStep) {
  const OneStage some({.nodes = {"n2", "n3", "n5"}});
  for (const Policy* of : {&Policy::gpipe, &policy("zb-h1")})
    EXPECT_EQ(step_s(some.profile, some.plan, *of, 8, {}), 8 * (6 + 3 + 12)) << of->name;
}

TEST(Recomputation, RefusesWhatCanNotBeRecomputed) {
  const Profile profile = chain(3);
  expect_error([&] { recomputing(profile, {.nodes = {"n9"}}); }, {"--recompute names a node 'n9', which"});
  expect_error([&] { recomputing(profile, {.nodes = {"n3"}}); }, {"--recompute names 'n3', which is a loss"});
  Plan plan = one_stage(profile);
  plan.stages[0].recomputed = {4};
  expect_error([&] { validate(plan, profile); }, {"recomputes node 4 (n3) in stage 0, but it is a loss"});
  plan.stages[0].recomputed = {9};
  expect_error([&] { validate(plan, profile); }, {"recomputes node 9 in stage 0, which does not have it"});
}

TEST(Recomputation, IsNotInPlansForOtherRuntimes) {
  const OneStage all({.all = true});
  expect_error([&] { plan_for("torch", all.plan, all.profile); },
               {"stage 0 of the plan recomputes nodes, which a plan for torch can't say"});
}

TEST(Recomputation, IsReadFromAFile) {
  EXPECT_TRUE(parse_recomputation("none").none());
  EXPECT_TRUE(parse_recomputation("all").all);
  EXPECT_TRUE(parse_recomputation("auto").automatic);
  EXPECT_EQ(parse_recomputation("# a stage's middle\n n2 \r\n\nn3 # and this\n").nodes,
            (std::vector<std::string>{"n2", "n3"}));
}

}  // namespace
}  // namespace antichain::test
