// Copies between the devices of a host, messages in one order between all other pairs, in the same job.
//
// The order of messages (pipeline/simulate/message_order.h) stays safe. A copy waits for nothing that has not
// been issued, so it stands in nobody's way. But a host may have to stand still until a message is done that
// it has issued: so a copy keeps its place in the order, and what is behind it is not issued before the copy
// was begun, or on the other side its buffer shown.
#pragma once

#include <memory>

#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/peer_pairs.h"
#include "pipeline/transport/peer_transport.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// `near` carries the tensors of pairs that are direct, `far` those of the others; both over `below`, which
// must outlive it.
std::unique_ptr<Transport> make_mixed_transport(Transport& below, std::unique_ptr<CopyingTransport> near,
                                                std::unique_ptr<MessagesInOrder> far, const PeerPairs&);

}  // namespace antichain
