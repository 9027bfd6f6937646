// Tensors straight from device to device between ranks of one host, by copies into memory that the receiver
// has shown to the sender (CUDA IPC; between threads just addresses). No order is needed: a copy is begun
// only when its buffer is known to be free, so nothing in a stream waits for what has not been issued.
//
//   recv    the buffer is shown: a small message to the sender, with the moment from which on it is free
//   send    once the buffer is shown, the copy is begun, and a small message says so to the receiver
//   wait    until that has come, and computing goes on after the copy: no host waits for a device
//   flush   until the device has done all copies
//
// Between other ranks (of other hosts, or kept from it by the system) tensors go through host memory as in
// pipeline/transport/staged_transport.h; there `flush` waits only until the job's transport has them.
#pragma once

#include <memory>

#include "pipeline/device/device_streams.h"
#include "pipeline/transport/peer_pairs.h"
#include "pipeline/transport/transport_over.h"

namespace antichain {

class CopyingTransport : public TransportOver {
 public:
  using TransportOver::TransportOver;
  // Begins every copy that can begin, and waits for nothing. Whether all that goes through host memory has
  // left the device.
  virtual bool hand_on() = 0;
  // Whether no copy of this name to the peer is still to be begun.
  virtual bool begun(MessageKey, int peer) const = 0;
};

// `below` must outlive it, and so must the context behind both streams. Collective, and so is its end, but
// for an exception.
std::unique_ptr<CopyingTransport> make_peer_transport(Transport& below, std::unique_ptr<PeerStream>,
                                                      std::unique_ptr<CopyStream>, const PeerPairs&);

}  // namespace antichain
