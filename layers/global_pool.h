// Global average pooling computes the mean of every channel of every image. x  N x C x H x W → y  N x C x 1 x
// 1. Lin et al., "Network In Network", ICLR 2014.
#pragma once

#include "framework/graph.h"

namespace antichain {

class GlobalAveragePool : public Op {
 public:
  std::string_view type() const override { return "global_average_pool"; }
  std::string str() const override { return "global_average_pool"; }
  Signature infer(std::span<const Shape> x) const override;
};

NodeId global_average_pool(Graph&, std::string name, NodeId x);

}  // namespace antichain
