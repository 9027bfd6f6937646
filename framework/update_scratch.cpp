#include "framework/update_scratch.h"

#include <algorithm>

#include "framework/averaged.h"
#include "framework/graph.h"

namespace antichain {

int64_t update_scratch_bytes(const Optimiser& optimiser, const Node& node) {
  const Averaged* both = averaged(optimiser);
  const auto* needs = dynamic_cast<const NeedsScratch*>(both ? both->of.get() : &optimiser);
  int64_t most = 0;
  for (size_t i = 0; needs && i < node.signature.params.size(); ++i)
    most = std::max(most, needs->scratch_bytes(node.param(i)));
  return most;
}

}  // namespace antichain
