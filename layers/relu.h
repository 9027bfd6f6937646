// Relu is the rectified linear unit: y = max(x, 0), element by element, any shape. Backward needs only y: dx
// = y > 0 ? dy : 0.
#pragma once

#include "framework/graph.h"

namespace antichain {

class Relu : public Op {
 public:
  std::string_view type() const override { return "relu"; }
  std::string str() const override { return "relu"; }
  Signature infer(std::span<const Shape> x) const override;
};

NodeId relu(Graph&, std::string name, NodeId x);

}  // namespace antichain
