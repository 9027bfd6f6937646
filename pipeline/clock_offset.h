// How far the clocks of the ranks' hosts are apart.
#pragma once

#include <vector>

#include "pipeline/transport.h"

namespace antichain {

// Collective. Seconds by which each rank's wall clock is ahead of rank 0's, on rank 0; empty elsewhere. Estimated from the
// quickest of several round trips, half of which is taken for each way (Cristian, "Probabilistic clock synchronization",
// Distributed Computing 3, 1989).
std::vector<double> clock_offsets(Transport&);

}  // namespace antichain
