// Add sums two tensors of one shape, where a residual block's branches meet.
#pragma once

#include "framework/graph.h"

namespace antichain {

class Add : public Op {
 public:
  std::string_view type() const override { return "add"; }
  std::string str() const override { return "add"; }
  Signature infer(std::span<const Shape> x) const override;
};

NodeId add(Graph&, std::string name, NodeId a, NodeId b);

}  // namespace antichain
