#include "layers/softmax_cross_entropy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

SoftmaxCrossEntropy::SoftmaxCrossEntropy(LossOptions o) : options(std::move(o)) {
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw Error(fmt::format("label smoothing lies between 0 and 1, not at {}", options.label_smoothing));
  for (const float weight : options.class_weights)
    if (!(weight >= 0 && std::isfinite(weight)))
      throw Error(fmt::format("the weight of a class is not negative and finite, unlike {}", weight));
}

std::string SoftmaxCrossEntropy::str() const {
  std::string more;
  if (!options.class_weights.empty())
    more += fmt::format(", class weights {}", fmt::join(options.class_weights, " "));
  if (options.ignore_index) more += fmt::format(", ignores {}", *options.ignore_index);
  if (options.reduction == Reduction::sum) more += ", sum";
  if (options.classes_last) more += ", classes last";
  return fmt::format("softmax_cross_entropy(label_smoothing {}, weight {}{})", options.label_smoothing,
                     options.weight, more);
}

LossSizes SoftmaxCrossEntropy::sizes(const Shape& logits) const {
  const int64_t classes = logits[options.classes_last ? logits.rank() - 1 : 1];
  return {logits[0], classes, logits.elements() / (logits[0] * classes)};
}

Signature SoftmaxCrossEntropy::infer(std::span<const Shape> x) const {
  check_inputs("softmax_cross_entropy", x, 2, 0);
  const bool last = options.classes_last, shares = !last && x[0].rank() == 2 && x[1] == x[0];
  const bool fits = x[0].rank() >= 2 && x[1].rank() == x[0].rank() - 1 && x[1][0] == x[0][0] &&
                    std::equal(x[1].begin() + 1, x[1].end(), x[0].begin() + (last ? 1 : 2));
  if (!shares && !fits)
    throw Error(fmt::format("softmax_cross_entropy wants {}, not {} and {}",
                            last ? "logits N x … x K and labels N x …"
                                 : "logits N x K and labels N or N x K, or logits N x K x … and labels N x …",
                            x[0].str(), x[1].str()));
  const bool weighted = !options.class_weights.empty();
  const auto [samples, classes, positions] = sizes(x[0]);
  if (weighted && std::ssize(options.class_weights) != classes)
    throw Error(fmt::format("softmax_cross_entropy of {} classes has {} class weights", classes,
                            options.class_weights.size()));
  if (weighted && shares)
    throw Error("softmax_cross_entropy has weights of classes, but labels that are shares of classes");
  if (options.ignore_index && shares)
    throw Error("softmax_cross_entropy ignores a class, but its labels are shares of classes");
  Signature s;
  s.y = {.shape = {samples, 2}};
  s.loss_weight = options.weight;
  if (divisor() == LossDivisor::samples) s.loss_weight /= double(positions);
  // Maximum, subtraction, exponential, sum, division.
  s.forward_flops = 5.0 * double(x[0].elements());
  return s;
}

LossDivisor SoftmaxCrossEntropy::divisor() const {
  if (options.reduction == Reduction::sum) return LossDivisor::one;
  const bool counts = !options.class_weights.empty() || options.ignore_index;
  return counts ? LossDivisor::counts : LossDivisor::samples;
}

LossCount SoftmaxCrossEntropy::count(std::span<const Tensor> x) const {
  const std::vector<float>& weights = options.class_weights;
  LossCount all;
  for (const int32_t label : std::span(x[1].data<int32_t>(), size_t(x[1].elements()))) {
    if (ignores(label)) continue;
    const bool known = label >= 0 && label < std::ssize(weights);
    // The kernel refuses others.
    all.divisor += weights.empty() ? 1 : known ? double(weights[size_t(label)]) : 0;
    ++all.hits;
  }
  all.hits *= double(x[1].shape()[0]) / double(x[1].elements());
  return all;
}

void refuse_shares(const TensorSpec& labels) {
  if (labels.dtype != DType::i32)
    throw Error(fmt::format("softmax_cross_entropy with classes last wants int32 labels, not {}",
                            name_of(labels.dtype)),
                "give the input of labels the dtype int32");
}

NodeId softmax_cross_entropy(Graph& graph, std::string name, NodeId logits, NodeId labels,
                             LossOptions options) {
  return graph.add(std::move(name), std::make_shared<SoftmaxCrossEntropy>(std::move(options)),
                   {logits, labels});
}

}  // namespace antichain
