// These functions measure how far the clocks of the ranks' hosts are apart. The quickest of several round
// trips counts, and each way is taken to last half of it (F. Cristian, "Probabilistic clock synchronization",
// Distributed Computing 1989; as in D. Mills, "Internet Time Synchronization: the Network Time Protocol",
// IEEE Transactions on Communications 1991).
#pragma once

#include <functional>
#include <vector>

#include "pipeline/transport/transport.h"

namespace antichain {

// Collective. Returns the seconds to add to this rank's clock to get rank 0's; `mine` reads this rank's.
double clock_offset_s(Transport&, const std::function<double()>& mine, int rounds = 32);

// Collective. Returns on rank 0 the seconds by which each rank's wall clock is ahead of rank 0's, and nothing
// elsewhere.
std::vector<double> clock_offsets(Transport&);

}  // namespace antichain
