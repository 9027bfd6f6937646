#include "layers/formula_loss.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace antichain {
namespace {

ElementwiseOptions formula_of(const FormulaLossOptions& o) {
  ElementwiseOptions formula{.steps = o.steps};
  if (!o.constants.empty()) {
    formula.parameter = Shape{int64_t(o.constants.size())};
    formula.parameter_axis = o.constants_axis;
  }
  return formula;
}

}  // namespace

FormulaLoss::FormulaLoss(FormulaLossOptions o) : options(std::move(o)), formula(formula_of(options)) {}

std::string FormulaLoss::str() const {
  std::string more;
  if (!options.constants.empty())
    more = fmt::format("; p {} at axis {}", fmt::join(options.constants, " "), options.constants_axis);
  return fmt::format("formula_loss({}{}; {}, weight {})", fmt::join(options.steps, "; "), more,
                     names(options.reduction)[size_t(options.reduction)], options.weight);
}

Signature FormulaLoss::infer(std::span<const Shape> x) const {
  const Signature of_elements = formula.infer(x);
  const int64_t samples = of_elements.y.shape[0];
  Signature s;
  s.y = {.shape = {samples, 2}};
  s.loss_weight = options.weight;
  if (options.reduction == FormulaMean::mean)
    s.loss_weight /= double(of_elements.y.shape.elements() / samples);
  s.forward_flops = of_elements.forward_flops + double(of_elements.y.shape.elements());
  return s;
}

NodeId formula_loss(Graph& graph, std::string name, std::vector<NodeId> x, FormulaLossOptions options) {
  return graph.add(std::move(name), std::make_shared<FormulaLoss>(std::move(options)), std::move(x));
}

}  // namespace antichain
