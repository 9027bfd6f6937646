// Combines softmax and cross-entropy, with label smoothing: Szegedy et al., "Rethinking the Inception
// Architecture for Computer Vision", CVPR 2016, section 7; the definition is that of PyTorch's
// CrossEntropyLoss.
//
//   logits  N x K      labels  N, int32, 0 … K − 1, or −1: a padding sample, which contributes nothing
//                      or N x K, float32: each class's share of the sample; zeros are padding
//   y  N x 2           the sample's loss, not yet scaled, and 1 where the arg max (the first of equals) is
//                   the label, or the arg max of the shares, else 0; both 0 for padding
//
//   target = (1 − label_smoothing) · shares + label_smoothing / K       shares = one_hot(label)
//   loss   = − Σk target_k · log softmax_k        dlogits = loss_scale · (softmax · Σk target_k − target)
//
// `weight` is the share of this loss in the training objective (an auxiliary head has less than 1). The
// kernel does not apply it: it becomes Signature::loss_weight, from which the runner makes loss_scale and the
// loss it reports.
#pragma once

#include "framework/graph.h"

namespace antichain {

struct LossOptions {
  float label_smoothing = 0;
  double weight = 1;
};
template <class Visit>
void fields(LossOptions& o, Visit&& visit) {
  visit("label_smoothing", o.label_smoothing);
  visit("weight", o.weight);
}

class SoftmaxCrossEntropy : public Op {
 public:
  explicit SoftmaxCrossEntropy(LossOptions options);
  std::string_view type() const override { return "softmax_cross_entropy"; }
  std::string str() const override;
  Role role() const override { return Role::loss; }
  Signature infer(std::span<const Shape> x) const override;  // logits, labels

  const LossOptions options;
};

NodeId softmax_cross_entropy(Graph&, std::string name, NodeId logits, NodeId labels, LossOptions = {});

}  // namespace antichain
