// Lists every way to carry out a pass of a convolution that obeys the rule for its bits, so that they can be
// compared by timing. Training takes the first, which is chosen without any timing (convolution.h).
#include "framework/cuda/switches.h"
#include "layers/cuda/convolution.h"

namespace antichain::cuda {

std::vector<NamedPlan> all_plans(const Convolution& c, Pass pass, Factors factors) {
  std::vector<NamedPlan> all;
  if (c.dtype == DType::bf16 && pass == Pass::weight_gradient) {
    std::vector<NamedPlan> wide = all_plans(widened(c), pass, Factors::tf32);
    if (wide.size() > 1) wide.pop_back();  // ours is there for bf16 itself
    const NamedPlan rounded{"cuDNN, rounded to bf16", plan_rounded_weight_gradient(c)};
    if (is_product(c)) all.push_back({"cuBLASLt", plan_bf16_weight_gradient(c)});
    if (rounded.plan && rounds_weight_gradients()) all.push_back(rounded);
    for (NamedPlan& by : wide)
      all.push_back({by.engine + ", of float32 copies", plan_widened(c, std::move(by.plan))});
    if (rounded.plan && !rounds_weight_gradients()) all.push_back(rounded);
  } else {
    all = plans_by_cudnn(c, pass, factors);
    if (!all.empty() && is_product(c) && pass != Pass::weight_gradient)
      all.push_back({"cuBLASLt", plan_product(c, pass, factors)});
  }
  all.push_back({"ours", plan_directly(c, pass)});
  return all;
}

ListAlternatives conv2d_alternatives(Factors factors) {
  return [factors](const Op& op, std::span<const Shape> x, Precision precision) {
    std::vector<PassAlternatives> passes;
    const auto* conv = dynamic_cast<const Conv2d*>(&op);
    if (!conv) return passes;
    const Convolution c(*conv, x[0], precision);
    for (const auto& [pass, name] :
         {std::pair(Pass::forward, "forward"), std::pair(Pass::input_gradient, "input gradient"),
          std::pair(Pass::weight_gradient, "weight gradient")}) {
      const DType weight = pass == Pass::weight_gradient ? DType::f32 : c.dtype;
      PassAlternatives all{
          .pass = name,
          .operands = {
              {c.x, c.dtype, Layout::nhwc}, {c.weight, weight, Layout::nhwc}, {c.y, c.dtype, Layout::nhwc}}};
      for (const NamedPlan& by : all_plans(c, pass, factors))
        all.all.push_back(
            {by.engine, by.plan->workspace_bytes(),
             [plan = by.plan](Context& context, std::span<const Tensor> t, std::byte* workspace) {
               plan->run(context, t[0].raw(), t[1].raw(), t[2].raw(), workspace);
             }});
      passes.push_back(std::move(all));
    }
    return passes;
  };
}

}  // namespace antichain::cuda
