// Tests which parameters patterns freeze, what that makes of the graph, and what is refused.
#include "framework/freeze.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"
#include "tests/framework/stand_ins.h"

namespace antichain {
namespace {

using test::Input;
using test::Pointwise;

Graph three_parameters() {
  Graph g("toy");
  NodeId x = g.add("images", std::make_shared<Input>(), {});
  for (const char* name : {"stem", "body.0", "body.10"})
    x = g.add(name, std::make_shared<Pointwise>("any", true), {x});
  return g;
}

std::string frozen_of(const Graph& graph) {
  std::string names;
  for (const Node& node : graph)
    for (const ParamSpec& param : node.signature.params)
      if (!param.trained) names += full_name(node, param) + " ";
  return names;
}

TEST(Freeze, PatternsAreThoseOfAShellOverWholeNames) {
  const auto frozen = [](const std::vector<std::string>& patterns) {
    return frozen_of(freeze_matching(three_parameters(), patterns));
  };
  EXPECT_EQ(frozen({"body.*"}), "body.0.weight body.10.weight ");
  EXPECT_EQ(frozen({"body.?.weight"}), "body.0.weight ");
  EXPECT_EQ(frozen({"body.[12]*", "stem.weight"}), "stem.weight body.10.weight ");
  EXPECT_EQ(frozen({}), "");
  expect_error([&] { frozen({"stem.*", "body"}); }, {"--freeze 'body'", "'toy'", "'body.10.weight'"});
}

TEST(Freeze, StopsGradientsBelowTheLowestTrainedNode) {
  const Graph all = three_parameters(), g = freeze_matching(all, {"stem.*", "body.10.*"});
  EXPECT_TRUE(all.needs_gradient(1));
  EXPECT_FALSE(g.needs_gradient(1));
  EXPECT_TRUE(g.needs_gradient(2));
  EXPECT_TRUE(g.needs_gradient(3));
  EXPECT_FALSE(trains(g[3]));
  EXPECT_EQ(param_bytes(g[3]), 0);
  EXPECT_EQ(param_bytes(g[3], false), 64);
}

TEST(Freeze, IsPartOfTheHashAndAddsUp) {
  const Graph g = three_parameters(), none = freeze_matching(g, {}), one = freeze_matching(g, {"stem.*"});
  EXPECT_EQ(g.hash(), none.hash());
  EXPECT_NE(g.hash(), one.hash());
  EXPECT_EQ(frozen_of(freeze_matching(one, {"body.0.*"})), "stem.weight body.0.weight ");
  const test::StandInBackend device;
  EXPECT_EQ(frozen_of(lower(one, device)), "stem.weight ");
}

TEST(Freeze, ANetworkOfWhichNothingIsTrainedIsRefused) {
  check_trains(freeze_matching(three_parameters(), {"body.*"}));
  expect_error([] { check_trains(freeze_matching(three_parameters(), {"*"})); },
               {"all parameters of 'toy' are frozen"});
}

}  // namespace
}  // namespace antichain
