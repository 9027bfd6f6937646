#include "layers/softmax_cross_entropy.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

SoftmaxCrossEntropy::SoftmaxCrossEntropy(LossOptions o) : options(o) {
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1))
    throw Error(fmt::format("label smoothing lies between 0 and 1, not at {}", o.label_smoothing));
}

std::string SoftmaxCrossEntropy::str() const {
  return fmt::format("softmax_cross_entropy(label_smoothing {}, weight {})", options.label_smoothing,
                     options.weight);
}

Signature SoftmaxCrossEntropy::infer(std::span<const Shape> x) const {
  check_inputs("softmax_cross_entropy", x, 2, 0);
  if (x[0].rank() != 2 || (x[1] != Shape{x[0][0]} && x[1] != x[0]))
    throw Error(fmt::format("softmax_cross_entropy wants logits N x K and labels N or N x K, not {} and {}",
                            x[0].str(), x[1].str()));
  Signature s;
  s.y = {.shape = {x[0][0], 2}};
  s.loss_weight = options.weight;
  // Maximum, subtraction, exponential, sum, division.
  s.forward_flops = 5.0 * double(x[0].elements());
  return s;
}

NodeId softmax_cross_entropy(Graph& graph, std::string name, NodeId logits, NodeId labels,
                             LossOptions options) {
  return graph.add(std::move(name), std::make_shared<SoftmaxCrossEntropy>(options), {logits, labels});
}

}  // namespace antichain
