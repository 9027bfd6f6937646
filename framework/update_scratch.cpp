#include "framework/update_scratch.h"

#include <algorithm>

#include "framework/averaged.h"
#include "framework/graph.h"
#include "framework/grouped.h"

namespace antichain {

int64_t update_scratch_bytes(const Optimiser& optimiser, const Node& node) {
  const Averaged* both = averaged(optimiser);
  const Optimiser* one = both ? both->of.get() : &optimiser;
  if (const Grouped* all = grouped(*one)) one = all->groups[0].optimiser.get();
  const auto* needs = dynamic_cast<const NeedsScratch*>(one);
  int64_t most = 0;
  for (size_t i = 0; needs && i < node.signature.params.size(); ++i)
    if (const ParamSpec& param = node.signature.params[i]; param.trained)
      most = std::max(most, needs->scratch_bytes(param, node.param(i)));
  return most;
}

}  // namespace antichain
