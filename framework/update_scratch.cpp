#include "framework/update_scratch.h"

#include <algorithm>

#include "framework/graph.h"
#include "framework/grouped.h"

namespace antichain {

int64_t update_scratch_bytes(const Optimiser& optimiser, const Node& node) {
  const auto* needs = dynamic_cast<const NeedsScratch*>(&of_one_group(optimiser));
  int64_t most = 0;
  for (size_t i = 0; needs && i < node.signature.params.size(); ++i)
    if (const ParamSpec& param = node.signature.params[i]; param.trained)
      most = std::max(most, needs->scratch_bytes(param, node.param(i)));
  return most;
}

}  // namespace antichain
