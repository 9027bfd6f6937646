// FormulaLoss is the sum or the mean of a formula of the network's outputs and its targets, element by
// element and with PyTorch's broadcasting: layers/elementwise.h has the formula's steps.
//
//   mean squared error     "subtract x0 x1", "multiply s0 s0"
//   absolute error         "subtract x0 x1", "abs s0"
//
// app/python/antichain/pytorch/losses/rows.py has the steps of PyTorch's losses.
//
//   x  tensors of one rank and equally many samples, float32 in every precision; the targets among them are
//      inputs of the network
//   p  in the steps: `constants`, numbers that are not trained. They are repeated to the axes before
//      constants_axis and behind it; -1 is the last
//   y  N x 2: the sum over a sample's elements, and 0
//
// The mean is over all elements (mean), or over samples (mean_of_samples); `weight` is the share of this loss
// in the training objective.
#pragma once

#include <string>
#include <vector>

#include "framework/loss_mean.h"
#include "layers/elementwise.h"

namespace antichain {

enum class FormulaMean { mean, mean_of_samples, sum };
constexpr std::string_view formula_mean_names[] = {"mean", "mean_of_samples", "sum"};
constexpr std::span<const std::string_view> names(FormulaMean) { return formula_mean_names; }

struct FormulaLossOptions {
  std::vector<std::string> steps = {};
  std::vector<float> constants = {};
  int constants_axis = -1;
  FormulaMean reduction = FormulaMean::mean;
  double weight = 1;
};
template <class Visit>
void fields(FormulaLossOptions& o, Visit&& visit) {
  visit("steps", o.steps);
  visit("constants", o.constants);
  visit("constants_axis", o.constants_axis);
  visit("reduction", o.reduction);
  visit("weight", o.weight);
}

class FormulaLoss : public Op, public LossMean {
 public:
  // Throws Error naming the step that can't be read, and why.
  explicit FormulaLoss(FormulaLossOptions);
  std::string_view type() const override { return "formula_loss"; }
  std::string str() const override;
  Role role() const override { return Role::loss; }
  Signature infer(std::span<const Shape> x) const override;
  LossDivisor divisor() const override {
    return options.reduction == FormulaMean::sum ? LossDivisor::one : LossDivisor::samples;
  }
  LossCount count(std::span<const Tensor>) const override { return {}; }
  bool has_hits() const override { return false; }

  const FormulaLossOptions options;
  const Elementwise formula;  // whose parameter the constants are
};

NodeId formula_loss(Graph&, std::string name, std::vector<NodeId> x, FormulaLossOptions);

}  // namespace antichain
