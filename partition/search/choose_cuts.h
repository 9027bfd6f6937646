// The tie rule: which of the plans with the smallest bottleneck.
//
// The bottleneck fixes the steady state; among equals, fill and drain differ. Where links take time, fewest
// bytes over all boundaries wins, then the smallest sum of squared stage times (the most even); on free links
// the other way round; then, from the last boundary to the first, the state that comes first in the state
// sequence.
#pragma once

#include "partition/search/bottleneck.h"

namespace antichain {

enum class TieRule { fewest_bytes, most_even };

// Of a search whose last threshold was attainable. Exact while each placement has at most `candidates`
// possible states, and fewer where there are many moves (a million pairs in all, but at least 4 states each);
// beyond that, only those with the fewest crossing bytes (and those of one known solution) are compared.
Cuts choose_cuts(const BottleneckSearch&, TieRule = TieRule::fewest_bytes, int candidates = 1000);

}  // namespace antichain
