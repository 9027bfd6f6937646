// A profile of a device is made from made-up steps: the step of one rank is the plain step, actions are as
// traced, and nodes have the shares that stamps gave them.
#include "pipeline/measure/device_times.h"

#include <gtest/gtest.h>

#include "pipeline/run/node_stamps.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain {
namespace {

Event action(Verb verb, int microbatch, double start_s, double end_s) {
  return {.action = {.verb = verb, .microbatch = microbatch}, .start_s = start_s, .end_s = end_s};
}

constexpr int first_node = 2, second_node = 3;  // after image and labels

// Two micro-batches whose stamped times are three quarters of what training takes, and a step with 8 s
// between its actions.
DeviceTimes steps() {
  DeviceTimes times(2);
  times.add_node(first_node, Verb::forward, 1e6);  // of a warm-up
  times.forget_nodes();
  for (const double odd_one_out : {0.0, 0.0, 100.0}) {
    for (int m = 0; m < 2; ++m) {
      times.add_node(first_node, Verb::forward, 3 + odd_one_out);
      times.add_node(second_node, Verb::forward, 5);
      times.add_node(second_node, Verb::forward, 1);  // comes twice: both count
      times.add_node(no_node, Verb::forward, 3);
      times.add_node(second_node, Verb::backward_input, 9);
      times.add_node(second_node, Verb::backward_weight, m == 0 ? 5 : 7);  // 6 on average
      times.add_node(first_node, Verb::backward_weight, 6);
      times.add_node(no_node, Verb::backward, 3);
    }
    times.add_node(first_node, Verb::update, 3);
    times.add_node(second_node, Verb::update, 6);
    times.end_of_nodes();
    times.add_traced({action(Verb::load, 0, 0, 1), action(Verb::forward, 0, 1, 16),
                      action(Verb::backward, 0, 20, 52), action(Verb::forward, 1, 53, 70),
                      action(Verb::backward, 1, 70, 102), action(Verb::update, 0, 110, 122 + odd_one_out)});
    times.add_plain(16 + 16 + 32 + 32 + 12 + 8 + odd_one_out);
  }
  return times;
}

TEST(DeviceTimes, NodesShareWhatTheirActionsTake) {
  Profile profile = test::chain(2, {});
  steps().price(profile);
  const NodeCost &a = profile.nodes[first_node].cost, &b = profile.nodes[second_node].cost;
  EXPECT_DOUBLE_EQ(a.forward_s, 4);
  EXPECT_DOUBLE_EQ(b.forward_s, 8);
  EXPECT_DOUBLE_EQ(b.backward_input_s, 12);
  EXPECT_DOUBLE_EQ(b.backward_weight_s, 8);
  EXPECT_DOUBLE_EQ(a.backward_weight_s, 8);
  EXPECT_DOUBLE_EQ(a.update_s, 4);
  EXPECT_DOUBLE_EQ(b.update_s, 8);
  // Looks at numbers take 4 s of each action, and 8 s a step are in none of its four.
  EXPECT_DOUBLE_EQ(profile.overhead_s, 4 + 8 / 4);
  EXPECT_DOUBLE_EQ(one_device_step_s(profile, 2), 116);
}

// Tracing takes time, too: then a plain step may be shorter than its traced actions.
TEST(DeviceTimes, NothingTakesLessThanNothing) {
  Profile profile = test::chain(2, {});
  DeviceTimes times(1);
  times.add_node(first_node, Verb::forward, 1);
  times.end_of_nodes();
  times.add_traced({action(Verb::forward, 0, 0, 2), action(Verb::backward, 0, 2, 3)});
  times.add_plain(1);
  times.price(profile);
  EXPECT_DOUBLE_EQ(profile.nodes[first_node].cost.forward_s, 2);
  EXPECT_DOUBLE_EQ(profile.nodes[second_node].cost.forward_s, 0);
  EXPECT_DOUBLE_EQ(profile.overhead_s, 0);
}

}  // namespace
}  // namespace antichain
