// This transport moves the tensors of a device through page-locked host memory and the job's own
// transport. It is for ranks that share a device, or have no way from device to device.
//
//   send   device ──copy──> host ──job's send──>
//   recv           ──job's recv──> host ──copy──> device
//
// A send's copy begins when all earlier computing is done, and a receive's copy when the message is there and
// the buffer is free.
//
// The host waits for messages. It waits for the device only until its own earlier sends have left, because
// peers may need them. Host buffers are reused by size, so in a steady state nothing is allocated.
#pragma once

#include <memory>

#include "pipeline/device/device_streams.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// `below` and the context behind `copies` must outlive it.
std::unique_ptr<Transport> make_staged_transport(Transport& below, std::unique_ptr<CopyStream> copies);

}  // namespace antichain
