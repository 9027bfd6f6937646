#include "framework/adamw.h"

#include <fmt/format.h>

namespace antichain {

std::string AdamW::str() const {
  return fmt::format("AdamW with betas {} and {}, epsilon {}, weight decay {}{}", options.beta1,
                     options.beta2, options.epsilon, float(options.weight_decay),
                     options.decay_groups == DecayGroups::all ? "" : " of matrices and kernels");
}

std::vector<std::string> AdamW::slots(const ParamSpec&) const { return {"exp_avg", "exp_avg_sq"}; }

}  // namespace antichain
