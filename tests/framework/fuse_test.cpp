// Tests what fuses and what must not: operators that know each other, in every arrangement around them.
#include "framework/fuse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "framework/error.h"
#include "tests/framework/stand_ins.h"

namespace antichain {
namespace {

using test::Input;
using test::Pointwise;

// "norm", which learns, may be followed by "add" and "relu", as batch norm may.
class Norm : public Pointwise {
 public:
  explicit Norm(std::string behind = {}) : Pointwise("norm", true), behind_(std::move(behind)) {}
  std::string str() const override { return "norm" + behind_; }
  std::shared_ptr<const Op> then(const Op& next, int input) const override {
    if (behind_.ends_with("relu") || (next.type() != "add" && next.type() != "relu")) return nullptr;
    return std::make_shared<Norm>(behind_ + "+" + std::string(next.type()));
  }

 private:
  std::string behind_;
};

class FusingBackend : public test::StandInBackend {
 public:
  explicit FusingBackend(std::string refused = "none") {
    for (const char* type : {"norm", "add", "relu", "conv", "loss"}) kernels_[type] = kernels_["any"];
    kernels_["norm"].fuses = [refused](const Op& fused) { return fused.str() != refused; };
  }
};

// A Network has nodes by name: n… is a norm, a… an add, r… a ReLU, anything else a convolution.
class Network {
 public:
  Network() { graph_.add("x", std::make_shared<Input>(), {}); }
  Network& add(const std::string& name, const std::vector<std::string>& inputs) {
    std::vector<NodeId> ids;
    for (const std::string& input : inputs) ids.push_back(graph_.find(input));
    std::shared_ptr<const Op> op = std::make_shared<Norm>();
    if (name[0] != 'n')
      op = std::make_shared<Pointwise>(name[0] == 'a' ? "add" : name[0] == 'r' ? "relu" : "conv");
    graph_.add(name, op, ids);
    return *this;
  }
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_{"toy"};
};

// Returns "n[a r](x, s)": node n, which absorbed a and r, of x and s.
std::string fused(const Network& network, const Backend& backend = FusingBackend()) {
  const Graph graph = fuse(network.graph(), backend);
  std::vector<std::string> nodes;
  for (const Node& node : graph) {
    if (node.role() == Role::input) continue;
    std::vector<std::string> inputs;
    for (NodeId id : node.inputs) inputs.push_back(graph[id].name);
    nodes.push_back(
        fmt::format("{}{}({})", node.name,
                    node.absorbed.empty() ? "" : fmt::format("[{}]", fmt::join(node.absorbed, " ")),
                    fmt::join(inputs, " ")));
  }
  return fmt::format("{}", fmt::join(nodes, ", "));
}

TEST(Fuse, ANormTakesTheReluBehindIt) {
  EXPECT_EQ(fused(Network().add("c", {"x"}).add("n", {"c"}).add("r", {"n"}).add("d", {"r"})),
            "c(x), n[r](c), d(n)");
}

TEST(Fuse, AResidualBlockBecomesOneNodeWhereItsLastStood) {
  EXPECT_EQ(fused(Network()
                      .add("c", {"x"})
                      .add("n", {"c"})
                      .add("s", {"x"})
                      .add("a", {"n", "s"})
                      .add("r", {"a"})
                      .add("d", {"r"})),
            "c(x), s(x), n[a r](c s), d(n)");
}

TEST(Fuse, WhicheverSideOfTheAdd) {
  EXPECT_EQ(fused(Network().add("c", {"x"}).add("n", {"c"}).add("a", {"x", "n"}).add("r", {"a"})),
            "c(x), n[a r](c x)");
}

// A shortcut with a norm of its own: the add goes to the first.
TEST(Fuse, OfTwoNormsTheFirstHasTheAdd) {
  EXPECT_EQ(fused(Network().add("n1", {"x"}).add("n2", {"x"}).add("a", {"n1", "n2"}).add("r", {"a"})),
            "n2(x), n1[a r](x n2)");
}

TEST(Fuse, NotWithSeveralConsumers) {
  EXPECT_EQ(fused(Network().add("n", {"x"}).add("r", {"n"}).add("d", {"n"})), "n(x), r(n), d(n)");
  EXPECT_EQ(fused(Network().add("n", {"x"}).add("a", {"n", "x"}).add("r", {"a"}).add("d", {"a"})),
            "n[a](x x), r(n), d(n)");
}

TEST(Fuse, NotWhatIsUsedTwice) {
  EXPECT_EQ(fused(Network().add("n", {"x"}).add("a", {"n", "n"})), "n(x), a(n n)");
}

TEST(Fuse, NotInAnotherOrder) {
  EXPECT_EQ(fused(Network().add("r", {"x"}).add("n", {"r"}).add("c", {"n"})), "r(x), n(r), c(n)");
  EXPECT_EQ(fused(Network().add("n", {"x"}).add("r1", {"n"}).add("r2", {"r1"})), "n[r1](x), r2(n)");
}

TEST(Fuse, OnlyWhatTheEngineHasAKernelFor) {
  const Network network = Network().add("n", {"x"}).add("a", {"n", "x"}).add("r", {"a"});
  EXPECT_EQ(fused(network, FusingBackend("norm+add+relu")), "n[a](x x), r(n)");
  EXPECT_EQ(fused(network, FusingBackend("norm+add")), "n(x), a(n x), r(a)");
  EXPECT_EQ(fused(Network().add("c", {"x"}), test::StandInBackend()), "c(x)");
}

// The input of a loss, and a node without consumers, are not fused.
TEST(Fuse, NothingIsLostAtTheEnd) {
  EXPECT_EQ(fused(Network().add("c", {"x"}).add("n", {"c"})), "c(x), n(c)");
}

TEST(Fuse, AbsorbedNamesAreFoundAndTakenAndHashed) {
  const Network network = Network().add("n", {"x"}).add("r", {"n"});
  Graph graph = fuse(network.graph(), FusingBackend());
  EXPECT_EQ(graph.find("r"), graph.find("n"));
  EXPECT_EQ(graph[graph.find("r")].signature.params.size(), 1u);
  EXPECT_THROW(graph.add("r", std::make_shared<Pointwise>("conv"), {0}), Error);
  EXPECT_NE(graph.hash(), fuse(Network().add("n", {"x"}).add("r1", {"n"}).graph(), FusingBackend()).hash());
  EXPECT_EQ(lower(network.graph(), FusingBackend()).find("r"), 1);
}

}  // namespace
}  // namespace antichain
