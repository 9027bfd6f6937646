// This is what one sample adds to the loss of a step, rounded to float32. Doubles hold the sum of as many as
// a step has exactly. So it does not matter which ranks add up which, where a network has several losses and
// the cut parts them.
#pragma once

#include "framework/graph.h"

namespace antichain {

inline double weighted_loss(const Node& node, float loss) {
  return double(float(node.signature.loss_weight * loss));
}

}  // namespace antichain
