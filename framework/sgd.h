// This is stochastic gradient descent with momentum, weight decay and Nesterov's variant, as PyTorch's
// torch.optim.SGD defines them (Sutskever et al., "On the importance of initialization and momentum in deep
// learning", ICML 2013):
//
//   g ← dw + weight_decay · w
//   v ← momentum · v + g
//   w ← w − rate · (nesterov ? g + momentum · v : v)
#pragma once

#include "framework/step_numbers.h"

namespace antichain {

struct SgdOptions {
  float momentum = 0.9f;
  float weight_decay = 5e-4f;
  bool nesterov = true;

  bool operator==(const SgdOptions&) const = default;
};

// A Rate is a learning rate, or its address in the device's memory, which is read when the update runs.
struct Rate {
  Rate(float value) : value(value) {}
  explicit Rate(const StepNumbers* live) : live(live) {}

  float value = 0;
  const StepNumbers* live = nullptr;
};

}  // namespace antichain
