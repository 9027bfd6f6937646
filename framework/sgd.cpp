#include "framework/sgd.h"

#include <fmt/format.h>

namespace antichain {

std::string Sgd::str() const {
  return fmt::format("momentum {}, weight decay {}{}", options.momentum, options.weight_decay,
                     options.decay_groups == DecayGroups::all ? "" : " of matrices and kernels");
}

std::vector<std::string> Sgd::slots(const ParamSpec&) const {
  if (options.momentum == 0) return {};
  return {"momentum"};
}

const std::shared_ptr<const Optimiser>& default_optimiser() {
  static const std::shared_ptr<const Optimiser> sgd = std::make_shared<Sgd>(SgdOptions{});
  return sgd;
}

}  // namespace antichain
