// This is stochastic gradient descent with momentum, weight decay and Nesterov's variant, as PyTorch's
// torch.optim.SGD defines them (Sutskever et al., "On the importance of initialization and momentum in deep
// learning", ICML 2013):
//
//   g ← dw + weight_decay · w
//   v ← momentum · v + g
//   w ← w − rate · (nesterov ? g + momentum · v : v)
//
// v is the slot "momentum". With a momentum of 0 there is no slot, and w ← w − rate · g.
//
// A prediction's direction (framework/prediction.h) is v; without a slot there is none. Step by step v
// becomes momentum · v, momentum² · v, …, which is another momentum shorter with Nesterov's variant.
#pragma once

#include "framework/by_element.h"
#include "framework/prediction.h"
#include "framework/weight_decay.h"

namespace antichain {

struct SgdOptions {
  float momentum = 0.9f;
  float weight_decay = 5e-4f;
  bool nesterov = true;
  DecayGroups decay_groups = DecayGroups::all;
};

class Sgd : public Optimiser, public UpdatesByElement {
 public:
  explicit Sgd(const SgdOptions& options) : options(options) {}
  std::string_view name() const override { return "sgd"; }
  std::string str() const override;
  std::vector<std::string> slots(const ParamSpec&) const override;

  const SgdOptions options;
};

// Returns by how much of v the weights are predicted to move.
inline float predicted_length(const SgdOptions& o, const Prediction& by, float rate) {
  double steps = by.method.step_by_step ? 0 : by.steps, length = o.nesterov ? o.momentum : 1;
  for (int i = 0; by.method.step_by_step && i < by.steps; ++i) steps += length *= o.momentum;
  return float(double(rate) * steps);
}

}  // namespace antichain
