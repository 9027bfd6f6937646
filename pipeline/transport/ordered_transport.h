// This transport moves tensors directly from device to device, over one stream of messages per rank (NCCL). A
// message in such a stream blocks all later ones until both ranks have reached it. That is safe because all
// ranks issue in one order (pipeline/simulate/message_order.h).
//
//   begin_step   gets this rank's turns, in the order
//   send, recv   make the turn ready, after the computing done so far. Every ready turn is issued once all
//                turns before it are; turns of one group are issued together, when the last of them is ready
//   wait         lets computing continue after the message; the host does not wait. The order guarantees that
//                the message has been issued by then
//   flush        waits until the device has done all messages
#pragma once

#include <memory>

#include "pipeline/device/device_streams.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// `below` and the context behind `messages` must outlive it. The watchdog also asks MessageStream::failure.
std::unique_ptr<Transport> make_ordered_transport(Transport& below, std::unique_ptr<MessageStream> messages);

}  // namespace antichain
