// Concat joins images along their channels: x[i]  N x Ci x H x W → y  N x (C0 + C1 + …) x H x W.
#pragma once

#include "framework/graph.h"

namespace antichain {

class Concat : public Op {
 public:
  std::string_view type() const override { return "concat"; }
  std::string str() const override { return "concat"; }
  Signature infer(std::span<const Shape> x) const override;
};

NodeId concat(Graph&, std::string name, std::vector<NodeId> x);

}  // namespace antichain
