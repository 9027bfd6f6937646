// This is what one sample adds to the loss of a step, rounded to float32. A double holds the sum of all of a
// step's terms exactly. So the sum does not depend on which rank adds up which terms, where a network has
// several losses and the cut separates them.
#pragma once

#include "framework/graph.h"

namespace antichain {

inline double weighted_loss(const Node& node, float loss) {
  return double(float(node.signature.loss_weight * loss));
}

}  // namespace antichain
