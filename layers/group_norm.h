// GroupNorm normalises groups of channels of every sample by itself: Wu & He, "Group Normalization",
// ECCV 2018; torch.nn.GroupNorm.
//
//   y = weight · (x − mean) / sqrt(variance + eps) + bias
//
// Mean and biased variance are those of one sample's C / groups neighbouring channels; weight and bias are
// per channel. It is the same in training and in evaluation.
#pragma once

#include "framework/graph.h"

namespace antichain {

struct GroupNormOptions {
  int64_t groups = 0;
  float eps = 1e-5f;
  bool affine = true;  // weight and bias
};
template <class Visit>
void fields(GroupNormOptions& o, Visit&& visit) {
  visit("groups", o.groups);
  visit("eps", o.eps);
  visit("affine", o.affine);
}

// The params are weight (1) and bias (0), of C each.
class GroupNorm : public Op {
 public:
  explicit GroupNorm(GroupNormOptions options);
  std::string_view type() const override { return "group_norm"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;  // x  N x C, N x C x …, of rank 2 to 6

  const GroupNormOptions options;
};

NodeId group_norm(Graph&, std::string name, NodeId x, GroupNormOptions);

}  // namespace antichain
