// Measures the link between neighbouring ranks by ping-pong.
#pragma once

#include "partition/profile.h"
#include "pipeline/transport.h"

namespace antichain {

// Collective, takes well under a second per pair of neighbours. Latency is half the median round trip of 64 bytes;
// bytes/s is that of 4 MiB messages after it. The slowest pair's figures are everyone's. One rank alone has a free link.
Link measure_link(Transport&);

}  // namespace antichain
