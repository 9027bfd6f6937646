// A profile in host memory is made from made-up times of whole and parted backwards.
#include "pipeline/measure/host_times.h"

#include <gtest/gtest.h>

#include "tests/pipeline/planning/networks.h"

namespace antichain {
namespace {

constexpr int apart_node = 2, joint_node = 3;  // after image and labels

// The second node computes both halves of a whole backward in one call.
const HostTimes whole = {{{{apart_node, Verb::forward}, 4},
                          {{joint_node, Verb::forward}, 8},
                          {{apart_node, Verb::backward_weight}, 5},
                          {{joint_node, Verb::backward}, 12},
                          {{joint_node, Verb::update}, 1}}};

HostTimes parted(double first_weight_s, double second_weight_s) {
  return {{{{joint_node, Verb::backward_input}, 7},
           {{apart_node, Verb::backward_weight}, first_weight_s},
           {{joint_node, Verb::backward_weight}, second_weight_s}}};
}

Profile priced_of(const HostTimes& apart) {
  Profile profile = test::chain(2, {});
  price(profile, whole, apart);
  return profile;
}

TEST(HostTimes, WhatHalvesTakeLongerApartIsTheWeightHalfs) {
  const Profile profile = priced_of(parted(5.5, 8));
  const NodeCost &a = profile.nodes[apart_node].cost, &b = profile.nodes[joint_node].cost;
  EXPECT_DOUBLE_EQ(a.forward_s, 4);
  EXPECT_DOUBLE_EQ(a.backward_weight_s, 5);
  EXPECT_DOUBLE_EQ(a.backward_parted_s, 0.5);
  EXPECT_DOUBLE_EQ(b.backward_input_s, 7);
  EXPECT_DOUBLE_EQ(b.backward_weight_s, 5);
  EXPECT_DOUBLE_EQ(b.backward_parted_s, 3);
  EXPECT_DOUBLE_EQ(b.update_s, 1);
}

// Where noise makes one node faster apart, the others have less, so that the sum remains.
TEST(HostTimes, NoiseAddsNothingToTheSum) {
  const Profile some = priced_of(parted(3, 8));  // 2 less and 3 more
  EXPECT_DOUBLE_EQ(some.nodes[apart_node].cost.backward_parted_s, 0);
  EXPECT_DOUBLE_EQ(some.nodes[joint_node].cost.backward_parted_s, 1);
  const Profile none = priced_of(parted(3, 6.5));  // 2 less and 1.5 more
  EXPECT_DOUBLE_EQ(none.nodes[joint_node].cost.backward_parted_s, 0);
}

}  // namespace
}  // namespace antichain
