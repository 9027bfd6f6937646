// `antichain profile --tune` prints this: for each pass of each kind of convolution, the engine that the rule
// chooses beside the fastest.
#pragma once

#include <string>
#include <vector>

#include "pipeline/measure/compare_engines.h"

namespace antichain {

std::string describe(const std::vector<TunedPass>&);

}  // namespace antichain
