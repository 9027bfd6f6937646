// This transport moves tensors directly from device to device between ranks of one host. The receiver shares
// its buffer with the sender (by CUDA IPC, or between threads by its address), and the sender copies into it.
// This needs no order: a copy begins only when its buffer is known to be free, so nothing in a stream waits
// for work that has not been issued.
//
//   recv    shares the buffer in a small message to the sender, with the moment from which it is free
//   send    begins the copy once the buffer is shared, and tells the receiver in a small message
//   wait    waits for that message; computing continues after the copy, and no host waits for a device
//   flush   waits until the device has done all copies
//
// Between other ranks (on other hosts, or where the system forbids it) tensors go through host memory as in
// pipeline/transport/staged_transport.h. For these `flush` waits only until the job's transport has them.
#pragma once

#include <memory>

#include "pipeline/device/device_streams.h"
#include "pipeline/transport/peer_pairs.h"
#include "pipeline/transport/transport_over.h"

namespace antichain {

class CopyingTransport : public TransportOver {
 public:
  using TransportOver::TransportOver;
  // Begins every copy that can begin, and waits for nothing. Returns whether all that goes through host
  // memory has left the device.
  virtual bool hand_on() = 0;
  // Returns whether every copy of this name to the peer has begun.
  virtual bool begun(MessageKey, int peer) const = 0;
};

// `below` and the context behind both streams must outlive it. Collective, and so is the destructor, unless
// an exception is under way.
std::unique_ptr<CopyingTransport> make_peer_transport(Transport& below, std::unique_ptr<PeerStream>,
                                                      std::unique_ptr<CopyStream>, const PeerPairs&);

}  // namespace antichain
