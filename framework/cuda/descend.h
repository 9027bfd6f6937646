// Updates one number by gradient descent, with the same operations in the same order as on the CPU. Neither
// contracts a · b + c.
#pragma once

#include "framework/cuda/launch.h"
#include "framework/sgd.h"

namespace antichain::cuda {

// Leaves v unchanged without momentum.
ANTICHAIN_ANYWHERE inline void descend(const SgdOptions& options, float rate, bool has_v, float& w, float dw,
                                       float& v) {
  const float g = dw + options.weight_decay * w;
  float step = g;
  if (has_v) {
    v = options.momentum * v + g;
    step = options.nesterov ? g + options.momentum * v : v;
  }
  w -= rate * step;
}

ANTICHAIN_ANYWHERE inline float now(const Rate& rate) { return rate.live ? rate.live->rate : rate.value; }

}  // namespace antichain::cuda
