// Softmax normalises exponentials over the channels, of every sample or of every pixel. Bridle,
// "Probabilistic Interpretation of Feedforward Classification Network Outputs", Neurocomputing, 1990.
//
//   x, y  N x C or N x C x H x W     y_c = exp(x_c − m) / Σ exp(x − m),  m = max x
//   dx = y · (dy − Σ dy · y): backward needs only y
//
// A network's last softmax is a part of its loss (layers/softmax_cross_entropy.h).
#pragma once

#include "framework/graph.h"

namespace antichain {

class Softmax : public Op {
 public:
  std::string_view type() const override { return "softmax"; }
  std::string str() const override { return "softmax"; }
  Signature infer(std::span<const Shape> x) const override;
};

NodeId softmax(Graph&, std::string name, NodeId x);

}  // namespace antichain
