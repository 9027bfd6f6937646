// Combines softmax and cross-entropy, with label smoothing: Szegedy et al., "Rethinking the Inception
// Architecture for Computer Vision", CVPR 2016, section 7; the definition is that of PyTorch's
// CrossEntropyLoss.
//
//   logits  N x K      labels  N, int32, 0 … K − 1, or −1: a padding sample, which contributes nothing
//                      or N x K, float32: each class's share of the sample; zeros are padding
//   logits  N x K x …  labels  N x …, int32: a label for each position (pixel, token) of a sample; −1 and
//                      ignore_index contribute nothing
//   logits  N x … x K  labels  N x …, int32: the same, with `classes_last`
//   y  N x 2           the sample's loss, the sum over its positions, not yet scaled; and the share of its
//                      positions that count and whose arg max (the first of equals) is the label, or the arg
//                      max of the shares
//
//   target_k = class_weight_k · ((1 − label_smoothing) · share_k + label_smoothing / K)
//   loss     = − Σk target_k · log softmax_k      dlogits = loss_scale · (softmax · Σk target_k − target)
//
// share is one_hot(label); without class_weights they are 1. The mean is over the positions that count, each
// with the weight of its label's class, of the whole batch (framework/loss_mean.h); without class_weights
// and ignore_index it is over all positions. With class_weights, labels are classes.
//
// `weight` is the share of this loss in the training objective (an auxiliary head has less than 1). The
// kernel does not apply it: it becomes Signature::loss_weight, from which the runner makes loss_scale and the
// loss it reports.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "framework/graph.h"
#include "framework/loss_mean.h"

namespace antichain {

enum class Reduction { mean, sum };
constexpr std::string_view reduction_names[] = {"mean", "sum"};
constexpr std::span<const std::string_view> names(Reduction) { return reduction_names; }

struct LossOptions {
  float label_smoothing = 0;
  double weight = 1;
  std::vector<float> class_weights = {};  // K, or none
  std::optional<int> ignore_index = {};
  Reduction reduction = Reduction::mean;
  bool classes_last = false;  // the logits of a position lie one behind the other
};
template <class Visit>
void fields(LossOptions& o, Visit&& visit) {
  visit("label_smoothing", o.label_smoothing);
  visit("weight", o.weight);
  visit("class_weights", o.class_weights);
  visit("ignore_index", o.ignore_index);
  visit("reduction", o.reduction);
  visit("classes_last", o.classes_last);
}

struct LossSizes {
  int64_t samples, classes, positions;  // positions: of a sample
};

class SoftmaxCrossEntropy : public Op, public LossMean {
 public:
  explicit SoftmaxCrossEntropy(LossOptions options);
  std::string_view type() const override { return "softmax_cross_entropy"; }
  std::string str() const override;
  Role role() const override { return Role::loss; }
  Signature infer(std::span<const Shape> x) const override;  // logits, labels
  Wants wants(size_t input, size_t /*inputs*/) const override {
    return input == 1 ? Wants::integers : Wants::numbers;
  }
  LossDivisor divisor() const override;
  LossCount count(std::span<const Tensor> x) const override;
  LossSizes sizes(const Shape& logits) const;
  // Says whether a label is there only to fill the place.
  bool ignores(int32_t label) const { return label == -1 || label == options.ignore_index; }

  const LossOptions options;
};

// Throws Error where the labels of a loss with classes_last are not classes.
void refuse_shares(const TensorSpec& labels);

NodeId softmax_cross_entropy(Graph&, std::string name, NodeId logits, NodeId labels, LossOptions = {});

}  // namespace antichain
