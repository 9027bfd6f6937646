// Measures the link between neighbouring ranks.
#pragma once

#include <vector>

#include "framework/context.h"
#include "partition/profile/profile.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// Collective; takes less than a second per pair of neighbours from 1 Gbit/s on. The messages are tensors of
// the context's device, and `tensors` is the transport that carries such tensors in training
// (pipeline/transport/choose_transport.h). The latency is half the median round trip of 64 bytes. The
// bandwidth comes from 4 MiB messages that cross, less the latency: in training both directions are used, and
// what confirms the messages of one takes some of the other. Between hosts the rank computes while some more
// of them cross, because the network's work is done by its core. Every rank gets the slowest pair's figures.
// A single rank has a link without cost.
Link measure_link(Transport& tensors, const Context&);

// Returns the link on which a message of hardly a byte takes small_s, and one of large_bytes takes large_s.
// Where ranks share cores, small messages may be delayed longer than large ones. So at least half of large_s
// counts as transfer, the rest as latency.
Link link_between(double small_s, double large_s, int64_t large_bytes);

// Returns the share of its core that a rank loses to messages. Alone, a piece of its work took the times
// alone_s, whose median counts; while messages crossed for passed_s, it did `beside` such pieces.
double share_of_core(const std::vector<double>& alone_s, int beside, double passed_s);

}  // namespace antichain
