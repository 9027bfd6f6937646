// StochasticDepth drops the whole output of a residual branch in training: Huang, Sun, Liu, Sedra &
// Weinberger, "Deep Networks with Stochastic Depth", ECCV 2016; the definition is that of torchvision's
// StochasticDepth.
//
//   train     y = kept ? x / (1 − p) : 0, kept with probability 1 − p: drawn for each sample with Drop::row,
//             once for all samples of a step with Drop::batch
//   evaluate  y = x
//
// With Drop::channel it is drawn for each channel of each sample: Tompson, Goroshin, Jain, LeCun & Bregler,
// "Efficient Object Localization Using Convolutional Networks", CVPR 2015 (PyTorch's Dropout1d to Dropout3d).
//
// Whether a part is kept is a pure function of (seed, node name, step, the sample's position in the batch),
// drawn as DropoutMask does (layers/dropout.h). So it depends neither on the cut nor on the micro-batch size.
// Backward draws it again, and nothing is stashed.
#pragma once

#include <array>

#include "framework/graph.h"
#include "layers/dropout.h"

namespace antichain {

enum class Drop { row, batch, channel };
constexpr std::array<std::string_view, 3> drop_names = {"row", "batch", "channel"};
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

// Draws one step's parts, which are samples, or their channels; every engine uses this class. Parts lie one
// after the other in the layout in_parts.
class KeptParts {
 public:
  KeptParts(const StochasticDepth& op, const Shape& x, const DropoutKey& key);

  // Returns the draw with the step in the device's memory, if the key has one. Device code calls it.
  constexpr KeptParts now() const { return {draw_.now(), channels_, whole_batch_}; }
  // Returns whether this part of the micro-batch is kept.
  constexpr bool kept(int64_t part) const {
    return draw_.kept(whole_batch_ ? 0 : part / channels_, part % channels_);
  }

 private:
  constexpr KeptParts(const DropoutMask::Draw& draw, int64_t channels, bool whole_batch)
      : draw_(draw), channels_(channels), whole_batch_(whole_batch) {}

  DropoutMask::Draw draw_;
  int64_t channels_;  // drawn one by one
  bool whole_batch_;
};
// Returns how many parts a micro-batch has.
int64_t parts_of(const StochasticDepth&, const Shape& x);
// Returns the layout where parts are dense: the given one, but for channels.
Layout in_parts(const StochasticDepth&, Layout);

NodeId stochastic_depth(Graph&, std::string name, NodeId x, double p, Drop = Drop::row);

}  // namespace antichain
