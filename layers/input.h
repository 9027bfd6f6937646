// An Input feeds a model: images (float32, N x C x H x W), labels (int32, N), soft labels (float32, N x K:
// each class's share of the sample), or the tokens of a text and what belongs to each (int32, N x T). No
// stage owns an input; every stage that uses one loads it.
#pragma once

#include "framework/graph.h"

namespace antichain {

class Input : public Op {
 public:
  explicit Input(TensorSpec spec, bool is_target = false);
  std::string_view type() const override { return "input"; }
  std::string str() const override;
  Role role() const override { return Role::input; }
  Signature infer(std::span<const Shape> x) const override;

  const TensorSpec spec;
  const bool is_target;  // only losses, and what computes them, read it
};

NodeId input_images(Graph&, std::string name, Shape shape);                               // N x C x H x W
NodeId input_labels(Graph&, std::string name, int64_t microbatch);                        // N
NodeId input_soft_labels(Graph&, std::string name, int64_t microbatch, int64_t classes);  // N x K
NodeId input_integers(Graph&, std::string name, Shape shape);                             // N x …

}  // namespace antichain
