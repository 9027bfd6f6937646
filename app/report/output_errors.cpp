#include "app/report/output_errors.h"

#include <fmt/format.h>

#include <cmath>

#include "layers/formula_loss.h"
#include "layers/softmax_cross_entropy.h"

namespace antichain {

OutputErrors::OutputErrors(const Graph& graph) {
  const Node& last = graph[graph.size() - 1];
  if (last.inputs.size() != 2 || graph.find("tokens") >= 0) return;
  const Node& target = graph[last.inputs[1]];
  if (target.role() != Role::input || graph[last.inputs[0]].role() == Role::input) return;
  const Shape& output = graph.shape(last.inputs[0]);
  if (const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(last.op.get())) {
    const LossSizes sizes = loss->sizes(output);
    if (sizes.positions == 1 || target.output().dtype != DType::i32) return;
    classes_ = sizes.classes, positions_ = sizes.positions, classes_last_ = loss->options.classes_last;
  } else {
    const auto* formula = dynamic_cast<const FormulaLoss*>(last.op.get());
    const bool of_difference = formula && formula->options.steps[0] == "subtract x0 x1";
    if (!of_difference || output != target.output().shape) return;
  }
  loss_ = last.op.get();
  sums_ = {.size = classes_ > 0 ? size_t(2 * classes_) : 3,
           .output = last.inputs[0],
           .target = target.name,
           .targets = target.output()};
}

OutputSums OutputErrors::sums() const {
  OutputSums all = sums_;
  all.add = [this](std::span<const float> output, const Tensor& targets, int64_t samples,
                   std::span<double> sums) {
    classes_ > 0 ? add_classes(output, targets, samples, sums)
                 : add_differences(output, targets, samples, sums);
  };
  return all;
}

void OutputErrors::add_differences(std::span<const float> output, const Tensor& targets, int64_t samples,
                                   std::span<double> sums) const {
  const int64_t elements = samples * (targets.elements() / targets.shape()[0]);
  for (int64_t i = 0; i < elements; ++i) {
    const double off = double(output[size_t(i)]) - double(targets.data<float>()[i]);
    sums[0] += std::abs(off), sums[1] += off * off;
  }
  sums[2] += double(elements);
}

void OutputErrors::add_classes(std::span<const float> output, const Tensor& labels, int64_t samples,
                               std::span<double> sums) const {
  const auto& loss = dynamic_cast<const SoftmaxCrossEntropy&>(*loss_);
  const int64_t step = classes_last_ ? 1 : positions_;
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t at = 0; at < positions_; ++at) {
      const int32_t label = labels.data<int32_t>()[n * positions_ + at];
      if (loss.ignores(label)) continue;
      const float* of = &output[size_t(n * classes_ * positions_ + (classes_last_ ? at * classes_ : at))];
      int64_t best = 0;
      for (int64_t k = 1; k < classes_; ++k)
        if (of[k * step] > of[best * step]) best = k;
      if (best == label) sums[size_t(label)] += 1;
      // In either: what is in both counts once.
      sums[size_t(classes_ + label)] += 1;
      if (best != label) sums[size_t(classes_ + best)] += 1;
    }
}

std::vector<OutputErrors::Mean> OutputErrors::means(std::span<const double> sums) const {
  if (sums.empty()) return {};
  if (classes_ == 0)
    return {{"mean_absolute_error", "mean absolute error", sums[0] / sums[2]},
            {"mean_squared_error", "mean squared error", sums[1] / sums[2]}};
  double all = 0, occur = 0;
  for (size_t k = 0; k < size_t(classes_); ++k)
    if (sums[size_t(classes_) + k] > 0) all += sums[k] / sums[size_t(classes_) + k], ++occur;
  return {{"mean_iou", "mean IoU", occur > 0 ? all / occur : NAN}};
}

std::string and_means(const std::vector<OutputErrors::Mean>& means) {
  std::string text;
  for (const OutputErrors::Mean& mean : means) text += fmt::format(", {} {:.6g}", mean.name, mean.value);
  return text;
}

}  // namespace antichain
