// The table of operators is compared with sums done by hand.
//
//   x ─▶ first ─▶ second ─▶ loss      4 MiB between nodes; weights are as large, with biases
#include "app/report/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/framework/stand_ins.h"

namespace antichain {
namespace {

constexpr double tensor = 4 << 20, weights = tensor + 4096, product = (2 * 1024 + 1) * 1048576.0;

// Returns the cells of the row that begins with `name`.
std::vector<std::string> cells(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> cells{std::istream_iterator<std::string>(words), {}};
    if (!cells.empty() && cells[0] == name) return cells;
  }
  return {};
}

class Roofline : public ::testing::Test {
 protected:
  Roofline() {
    for (const char* name : {"first", "second"}) {
      NodeCost& cost = profile_.nodes[size_t(graph_.find(name))].cost;
      cost.forward_s = 0.010, cost.backward_input_s = 0.012, cost.backward_weight_s = 0.008;
      cost.update_s = 0.005;
    }
    profile_.nodes[size_t(graph_.find("loss"))].cost.forward_s = 0.001;
  }
  NodeWork backward(const char* name, int microbatches) const {
    return backward_work(graph_, graph_.find(name), microbatches);
  }

  const Graph graph_ = large_products(cpu_engine(), Precision::float32, 1);
  Profile profile_ = unpriced(graph_, "");
};

TEST_F(Roofline, CountsEachOperandOnce) {
  const NodeWork forward = forward_work(graph_, graph_.find("first"));
  EXPECT_DOUBLE_EQ(forward.flops, product);
  EXPECT_EQ(forward.bytes, 2 * tensor + weights);
  EXPECT_EQ(forward_work(graph_, graph_.find("x")).bytes, 0) << "an input computes nothing";
  // The first layer has no input gradient: it reads x and dy, and writes the weights'.
  EXPECT_DOUBLE_EQ(backward("first", 1).flops, product);
  EXPECT_EQ(backward("first", 1).bytes, 2 * tensor + weights);
  EXPECT_EQ(backward("first", 2).bytes, 2 * tensor + 2 * weights) << "adds to the gradients";
  // The second one also reads weights and writes dx.
  EXPECT_DOUBLE_EQ(backward("second", 1).flops, 2 * product);
  EXPECT_EQ(backward("second", 1).bytes, 3 * tensor + 2 * weights);
  EXPECT_EQ(update_work(profile_, graph_.find("first")).bytes, 5 * weights) << "one slot, momentum";
}

TEST_F(Roofline, RefusesADeviceWithMemoryOfItsOwn) {
  struct Far : test::StandInBackend {
    bool host_memory() const override { return false; }
  };
  expect_error([] { check_roofs(Far()); }, {"the roofs of stand-in are not measured"});
}

TEST_F(Roofline, AsksForTheRoofThatTakesLonger) {
  const Roofs roofs{.flops_per_s = 100e9, .bytes_per_s = 10e9, .array_bytes = 64 << 20};
  EXPECT_TRUE(roofs.computing_binds({.flops = 101, .bytes = 10}));
  EXPECT_FALSE(roofs.computing_binds({.flops = 99, .bytes = 10}));
}

TEST_F(Roofline, SumsAStepByKindOfOperator) {
  const Roofs roofs{.flops_per_s = 200e9, .bytes_per_s = 10e9, .array_bytes = 64 << 20};
  const std::string text = describe(graph_, profile_, 2, roofs);
  // Two layers and two micro-batches have 40 ms of forward and 80 of backward. Each micro-batch has 5
  // products of 2.15 GFLOP, 9 tensors and 7 copies of weights. With update and loss a step takes 132 ms.
  EXPECT_THAT(cells(text, "linear"), ::testing::ElementsAre("linear", "40.00", "80.00", "120.0", "90.9",
                                                            "179.0", "90", "1.12", "11", "FLOPs"));
  // 10 copies of the weights in 10 ms, half a percent of the 41.9 MB being biases.
  EXPECT_THAT(cells(text, "update"),
              ::testing::ElementsAre("update", "-", "-", "10.00", "7.6", "-", "-", "4.20", "42", "bytes"));
  EXPECT_EQ(cells(text, "loss").size(), 0u) << "rows are kinds, not nodes";
  EXPECT_EQ(cells(text, "softmax_cross_entropy").at(1), "2.00");
  EXPECT_EQ(cells(text, "input").size(), 0u) << "takes no time";
  EXPECT_LT(text.find("linear"), text.find("update")) << "the longest first";
  EXPECT_THAT(text, ::testing::HasSubstr("Above 20.0 FLOPs a byte"));
}

}  // namespace
}  // namespace antichain
