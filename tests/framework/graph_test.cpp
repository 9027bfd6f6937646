// Tests graphs as values: consumers, gradients, hashes; and what lower() does to layouts.
#include "framework/graph.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "tests/framework/stand_ins.h"

namespace antichain {
namespace {

using test::Input;
using test::Pointwise;

template <class T, class... Args>
std::shared_ptr<const Op> op(Args... args) {
  return std::make_shared<T>(args...);
}

TEST(Graph, KnowsConsumersAndWhoNeedsGradients) {
  Graph g("toy");
  const NodeId x = g.add("images", op<Input>(), {});
  const NodeId a = g.add("a", op<Pointwise>("any"), {x});
  const NodeId b = g.add("b", op<Pointwise>("any", true), {a});
  const NodeId c = g.add("c", op<Pointwise>("any"), {b, b});
  EXPECT_EQ(g.consumers(b), std::vector<NodeId>{c});  // used twice, named once
  EXPECT_FALSE(g.needs_gradient(x));
  EXPECT_FALSE(g.needs_gradient(a));  // nothing before it learns
  EXPECT_TRUE(g.needs_gradient(b));
  EXPECT_TRUE(g.needs_gradient(c));
  EXPECT_EQ(g.microbatch(), 2);
  EXPECT_EQ(g.find("b"), b);
  EXPECT_EQ(g.find("z"), -1);
  EXPECT_THROW(g.add("a", op<Pointwise>("any"), {x}), Error);
  EXPECT_THROW(g.add("d", op<Pointwise>("any"), {9}), Error);
}

TEST(Graph, HashCoversNamesOperatorsEdgesAndLayouts) {
  auto build = [](const std::string& name, const std::string& type, NodeId input) {
    Graph g("toy");
    g.add("images", op<Input>(), {});
    g.add("a", op<Pointwise>("any"), {0});
    g.add(name, op<Pointwise>(type), {input});
    return g.hash();
  };
  const std::string base = build("b", "any", 1);
  EXPECT_EQ(base, build("b", "any", 1));
  EXPECT_NE(base, build("c", "any", 1));
  EXPECT_NE(base, build("b", "plain", 1));
  EXPECT_NE(base, build("b", "any", 0));
}

TEST(Lower, PutsOneReorderWhereNeighboursDisagree) {
  Graph g("toy");
  g.add("images", op<Input>(), {});
  g.add("stem", op<Pointwise>("plain"), {0});
  g.add("left", op<Pointwise>("blocked"), {1});
  g.add("right", op<Pointwise>("blocked"), {1});  // shares the reorder of "left"
  g.add("relu", op<Pointwise>("any"), {2});       // stays blocked
  g.add("head", op<Pointwise>("plain"), {4});
  const Graph lowered = lower(g, test::StandInBackend());
  std::vector<std::string> names;
  for (const Node& node : lowered) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"images", "stem", "stem.nChw16c", "left", "right", "relu",
                                             "relu.plain", "head"}));
  EXPECT_EQ(lowered[5].output().layout, Layout::nChw16c);
  EXPECT_EQ(lowered.consumers(2), (std::vector<NodeId>{3, 4}));
  EXPECT_NE(lowered.hash(), g.hash());
}

}  // namespace
}  // namespace antichain
