// The static half of a profile (bytes, padding, what is kept) comes from a lowered graph.
#include "partition/profile/profile.h"

#include <memory>

#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

struct FakeOp : Op {
  FakeOp(Role role, Signature signature) : role_(role), signature_(std::move(signature)) {}
  std::string_view type() const override { return "fake"; }
  std::string str() const override { return "fake()"; }
  Role role() const override { return role_; }
  Signature infer(std::span<const Shape>) const override { return signature_; }
  Role role_;
  Signature signature_;
};

std::shared_ptr<Op> fake(Role role, Shape y, std::vector<ParamSpec> params = {}) {
  Signature signature;
  signature.y.shape = y;
  signature.params = std::move(params);
  signature.forward_flops = 12;
  return std::make_shared<FakeOp>(role, signature);
}

TEST(Unpriced, TakesNamesEdgesAndRolesFromTheGraph) {
  Graph graph("m");
  NodeId x = graph.add("x", fake(Role::input, {8, 3, 4, 4}), {});
  NodeId a = graph.add("a", fake(Role::compute, {8, 5}, {{"weight", {5, 48}}}), {x});
  graph.add("b", fake(Role::loss, {8}), {a, a});
  Profile profile = unpriced(graph, "cpu");
  EXPECT_EQ(profile.model, "m");
  EXPECT_EQ(profile.device, "cpu");
  EXPECT_EQ(profile.graph_hash, graph.hash());
  EXPECT_EQ(profile.microbatch, 8);
  ASSERT_EQ(profile.nodes.size(), 3u);
  EXPECT_EQ(profile.nodes[0].role, Role::input);
  EXPECT_EQ(profile.nodes[2].role, Role::loss);
  EXPECT_EQ(profile.nodes[1].op, "fake");
  EXPECT_EQ(profile.nodes[2].inputs, std::vector<int>({1, 1}));
  EXPECT_TRUE(profile.nodes[1].needs_gradient);
  EXPECT_FALSE(profile.nodes[0].needs_gradient);
  EXPECT_EQ(profile.nodes[1].cost.output_bytes, 8 * 5 * 4);
  EXPECT_EQ(profile.nodes[1].cost.param_bytes, 5 * 48 * 4);
  EXPECT_EQ(profile.nodes[1].cost.flops, 12);
  EXPECT_EQ(profile.nodes[1].cost.compute_s(), 0);
  EXPECT_EQ(profile.consumers(), (std::vector<std::vector<int>>{{1}, {2}, {}}));
}

TEST(Unpriced, CountsThePaddingOfBlockedLayouts) {
  Graph graph("m");
  NodeId x = graph.add("x", fake(Role::input, {2, 3, 4, 4}), {});
  Lowering lowering;
  lowering.y = Layout::nChw16c;
  lowering.params = {Layout::OIhw16i16o, Layout::plain};
  lowering.stash = {{.shape = {2, 7}}, {.shape = {3}, .dtype = DType::u8}};
  graph.add("a", fake(Role::compute, {2, 20, 4, 4}, {{"weight", {20, 3, 3, 3}}, {"bias", {20}}}), {x},
            lowering);
  NodeCost cost = unpriced(graph, "cpu").nodes[1].cost;
  EXPECT_EQ(cost.output_bytes, 2 * 32 * 4 * 4 * 4);         // 20 channels in 2 blocks of 16
  EXPECT_EQ(cost.param_bytes, (32 * 16 * 3 * 3 + 20) * 4);  // 20 -> 32 outputs, 3 -> 16 inputs
  EXPECT_EQ(cost.stash_bytes, 2 * 7 * 4 + 3);
}

TEST(Unpriced, StashHoldsTheStatisticsToo) {
  Signature signature;
  signature.y.shape = {2, 6};
  signature.statistics = {{.shape = {6}}, {.shape = {6}}};
  Graph graph("m");
  NodeId x = graph.add("x", fake(Role::input, {2, 6}), {});
  graph.add("a", std::make_shared<FakeOp>(Role::compute, signature), {x});
  EXPECT_EQ(unpriced(graph, "cpu").nodes[1].cost.stash_bytes, 48);
}

TEST(Unpriced, AnOutputIsKeptForItsOwnBackwardOrAConsumers) {
  Lowering keeps_x, keeps_y;
  keeps_x.keeps_x = true;
  keeps_y.keeps_y = true;
  Graph graph("m");
  NodeId x = graph.add("x", fake(Role::input, {2}), {});
  NodeId a = graph.add("a", fake(Role::compute, {2}, {{"weight", {2}}}), {x}, keeps_y);
  NodeId b = graph.add("b", fake(Role::compute, {2}), {a});
  graph.add("c", fake(Role::compute, {2}), {b}, keeps_x);
  graph.add("d", fake(Role::compute, {2}), {b});
  Profile profile = unpriced(graph, "cpu");
  EXPECT_FALSE(profile.nodes[0].cost.keeps_output);
  EXPECT_TRUE(profile.nodes[1].cost.keeps_output);
  EXPECT_TRUE(profile.nodes[2].cost.keeps_output);
  EXPECT_FALSE(profile.nodes[3].cost.keeps_output);
  EXPECT_FALSE(profile.nodes[4].cost.keeps_output);
}

}  // namespace
}  // namespace antichain
