// The tie rule chooses among the plans with the smallest bottleneck.
//
// The bottleneck fixes the steady state. Among equals, fill and drain differ. Where links take time, the
// fewest bytes over all boundaries win, then the smallest sum of squared stage times (the most even). On free
// links it is the other way round. After that, from the last boundary to the first, the state wins that comes
// first in the state sequence.
#pragma once

#include "partition/search/bottleneck.h"

namespace antichain {

enum class TieRule { fewest_bytes, most_even };

// The search's last threshold must have been attainable. The choice is exact while each placement has at most
// `candidates` possible states, and fewer where there are many moves (a million pairs in all, but at least 4
// states each). Beyond that, only those with the fewest crossing bytes (and those of one known solution) are
// compared.
Cuts choose_cuts(const BottleneckSearch&, TieRule = TieRule::fewest_bytes, int candidates = 1000);

}  // namespace antichain
