// The tie rule: which of the plans with the smallest bottleneck.
//
// The bottleneck fixes the steady state; among equals, what is sent during fill and drain differs. Fewest bytes over
// all boundaries wins, then the smallest sum of squared stage times (the most even), then, boundary by boundary from
// the last one, the state that comes first in the state sequence.
#pragma once

#include "partition/bottleneck.h"
#include "partition/cuts.h"

namespace antichain {

// Of a search whose last threshold was attainable. Exact while each boundary has at most `candidates` possible
// states; beyond that, only those with the fewest crossing bytes (and those of one known solution) are compared.
Cuts choose_cuts(const BottleneckSearch&, int candidates = 1000);

}  // namespace antichain
