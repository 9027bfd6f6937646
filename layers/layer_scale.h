// LayerScale scales every channel by a parameter that begins near 0: Touvron, Cord, Sablayrolles, Synnaeve &
// Jégou, "Going Deeper with Image Transformers", ICCV 2021, section 2.1.
//
//   x  N x C x H x W     y = factor · x, one factor per channel
//
// torchvision's ConvNeXt has the parameter as a member of the block, of the shape C x 1 x 1. So it has no
// name of its own: node "features.1.0.layer_scale" has the parameter "features.1.0.layer_scale".
#pragma once

#include "framework/graph.h"

namespace antichain {

struct LayerScaleOptions {
  double init = 1e-6;  // of every factor
};
template <class Visit>
void fields(LayerScaleOptions& o, Visit&& visit) {
  visit("init", o.init);
}

// The parameter is the factors (init), C x 1 x 1.
class LayerScale : public Op {
 public:
  explicit LayerScale(LayerScaleOptions o) : options(o) {}
  std::string_view type() const override { return "layer_scale"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const LayerScaleOptions options;
};

NodeId layer_scale(Graph&, std::string name, NodeId x, LayerScaleOptions = {});

}  // namespace antichain
