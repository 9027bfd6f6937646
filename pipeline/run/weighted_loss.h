// What one sample adds to the loss of a step. Rounded to float32: doubles hold the sum of as many as a step
// has exactly, so that it does not matter which ranks add up which, where a network has several losses and
// the cut parts them.
#pragma once

#include "framework/graph.h"

namespace antichain {

inline double weighted_loss(const Node& node, float loss) {
  return double(float(node.signature.loss_weight * loss));
}

}  // namespace antichain
