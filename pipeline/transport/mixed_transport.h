// This transport copies between the devices of a host, and sends messages in one order between all other
// pairs of ranks of the same job.
//
// The order of messages (pipeline/simulate/message_order.h) stays safe. A copy waits only for issued work, so
// it blocks no other rank. But a host may be blocked until a message that it has issued is done. So a copy
// keeps its place in the order: later turns are not issued before the copy has begun, or, on the receiver,
// before its buffer is shared.
#pragma once

#include <memory>

#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/peer_pairs.h"
#include "pipeline/transport/peer_transport.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// `near` carries the tensors of pairs that are direct, and `far` those of the others. Both use `below`, which
// must outlive it.
std::unique_ptr<Transport> make_mixed_transport(Transport& below, std::unique_ptr<CopyingTransport> near,
                                                std::unique_ptr<MessagesInOrder> far, const PeerPairs&);

}  // namespace antichain
