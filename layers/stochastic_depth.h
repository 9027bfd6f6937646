// StochasticDepth drops the whole output of a residual branch in training: Huang, Sun, Liu, Sedra &
// Weinberger, "Deep Networks with Stochastic Depth", ECCV 2016; the definition is that of torchvision's
// StochasticDepth.
//
//   train     y = kept ? x / (1 − p) : 0, kept with probability 1 − p: drawn for each sample with Drop::row,
//             once for all samples of a step with Drop::batch
//   evaluate  y = x
//
// Whether a sample is kept is a pure function of (seed, node name, step, the sample's position in the batch),
// drawn as DropoutMask does (layers/dropout.h). So it depends neither on the cut nor on the micro-batch size.
// Backward draws it again, and nothing is stashed.
#pragma once

#include <array>

#include "framework/graph.h"
#include "layers/dropout.h"

namespace antichain {

enum class Drop { row, batch };
constexpr std::array<std::string_view, 2> drop_names = {"row", "batch"};
constexpr std::span<const std::string_view> names(Drop) { return drop_names; }

struct StochasticDepthOptions {
  double p = 0;
  Drop drop = Drop::row;
};
template <class Visit>
void fields(StochasticDepthOptions& o, Visit&& visit) {
  visit("p", o.p);
  visit("drop", o.drop);
}

class StochasticDepth : public Op {
 public:
  StochasticDepth(double p, Drop drop, std::string node_name);  // Error unless 0 ≤ p < 1
  std::string_view type() const override { return "stochastic_depth"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;  // x  N x …

  const double p;
  const Drop drop;
  const std::string node_name;
};

// Draws one step's samples; every engine uses this class.
class KeptSamples {
 public:
  KeptSamples(const StochasticDepth& op, const DropoutKey& key);

  // Returns the draw with the step in the device's memory, if the key has one. Device code calls it.
  constexpr KeptSamples now() const { return {draw_.now(), whole_batch_}; }
  // Returns whether the sample at this position of the micro-batch is kept.
  constexpr bool kept(int64_t sample) const { return draw_.kept(whole_batch_ ? 0 : sample, 0); }

 private:
  constexpr KeptSamples(const DropoutMask::Draw& draw, bool whole_batch)
      : draw_(draw), whole_batch_(whole_batch) {}

  DropoutMask::Draw draw_;
  bool whole_batch_;
};

NodeId stochastic_depth(Graph&, std::string name, NodeId x, double p, Drop = Drop::row);

}  // namespace antichain
