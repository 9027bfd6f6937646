// Stochastic gradient descent with momentum, weight decay and Nesterov's variant, as PyTorch's
// torch.optim.SGD defines them (Sutskever et al., "On the importance of initialization and momentum in deep
// learning", ICML 2013):
//
//   g ← dw + weight_decay · w
//   v ← momentum · v + g
//   w ← w − rate · (nesterov ? g + momentum · v : v)
#pragma once

namespace antichain {

struct SgdOptions {
  float momentum = 0.9f;
  float weight_decay = 5e-4f;
  bool nesterov = true;
};

}  // namespace antichain
