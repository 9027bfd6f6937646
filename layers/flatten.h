// Flatten turns images into rows: x  N x C x H x W → y  N x CHW, in the order C, H, W.
#pragma once

#include "framework/graph.h"

namespace antichain {

class Flatten : public Op {
 public:
  std::string_view type() const override { return "flatten"; }
  std::string str() const override { return "flatten"; }
  Signature infer(std::span<const Shape> x) const override;
};

NodeId flatten(Graph&, std::string name, NodeId x);

}  // namespace antichain
