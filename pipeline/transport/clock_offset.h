// How far the clocks of the ranks' hosts are apart, from the quickest of several round trips, half of which
// is taken for each way (F. Cristian, "Probabilistic clock synchronization", Distributed Computing 1989; as
// in D. Mills, "Internet Time Synchronization: the Network Time Protocol", IEEE Transactions on
// Communications 1991).
#pragma once

#include <functional>
#include <vector>

#include "pipeline/transport/transport.h"

namespace antichain {

// Collective. What to add to this rank's clock, in seconds, to read rank 0's; `mine` reads this rank's.
double clock_offset_s(Transport&, const std::function<double()>& mine, int rounds = 32);

// Collective. Seconds by which each rank's wall clock is ahead of rank 0's, on rank 0; empty elsewhere.
std::vector<double> clock_offsets(Transport&);

}  // namespace antichain
