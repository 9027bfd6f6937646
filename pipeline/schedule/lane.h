// Messages of one lane are passed in one order and may wait for each other. Messages of different lanes do
// not.
#pragma once

#include "pipeline/schedule/schedule.h"

namespace antichain {

constexpr int no_lane = -1;  // of a message that waits for no other

// In most schedules activations go one way and gradients the other, and neither is to hold the other up. The
// sums of replicas and the gradients of shared weights go with the gradients.
constexpr int lane_of_flow(Flow flow) { return flow == Flow::activation ? 0 : 1; }

}  // namespace antichain
