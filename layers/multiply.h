// Multiply multiplies two tensors element by element: y = a · b. One factor per channel of each image is
// repeated over the pixels, as the gates of squeeze-and-excitation blocks are: Hu, Shen & Sun,
// "Squeeze-and-Excitation Networks", CVPR 2018.
//
//   a  N x C x H x W     b  N x C x 1 x 1, or the shape of a (which then may have any rank)
//   y  the shape of a
//   da = dy · b          db = dy · a, summed over the pixels where b is repeated
#pragma once

#include "framework/graph.h"

namespace antichain {

class Multiply : public Op {
 public:
  std::string_view type() const override { return "multiply"; }
  std::string str() const override { return "multiply"; }
  Signature infer(std::span<const Shape> x) const override;
};

NodeId multiply(Graph&, std::string name, NodeId a, NodeId b);

}  // namespace antichain
