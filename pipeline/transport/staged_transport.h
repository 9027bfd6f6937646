// Tensors of a device through page-locked host memory and the job's own transport: for ranks that share a
// device, or have no way from device to device.
//
//   send   device ──copy──> host ──job's send──>
//   recv           ──job's recv──> host ──copy──> device
//
// A send's copy begins when what was computed before is done, a receive's when the message is there and the
// buffer is free.
//
// The host waits for messages, and never for the device, but where a wait needs its own earlier sends to have
// left: peers may be waiting for them. Host buffers are used again, by size; in a steady state nothing is
// allocated.
#pragma once

#include <memory>

#include "pipeline/device/device_streams.h"
#include "pipeline/transport/transport_over.h"

namespace antichain {

class StagedTransport : public TransportOver {
 public:
  using TransportOver::TransportOver;
  // Begins what can begin and waits for nothing. Whether the job's transport has all that was sent, so that
  // its memory on the device is free.
  virtual bool hand_on() = 0;
};

// `below` must outlive it, and so must the context behind `copies`.
std::unique_ptr<StagedTransport> make_staged_transport(Transport& below, std::unique_ptr<CopyStream> copies);

}  // namespace antichain
