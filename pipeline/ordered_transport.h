// Tensors straight from device to device, over one stream of messages per rank (NCCL). A message there waits, with all behind
// it, until both ranks have come to it; what keeps that safe is one order that all ranks issue in: pipeline/message_order.h.
//
//   begin_step   this rank's turns, in the order
//   send, recv   the turn is ready, with the moment of computing that it has to wait for; every turn whose predecessors have
//                all been issued is issued, and turns of one group together, with the last of them
//   wait         computing goes on after the message: the host does not wait. By the order the message has been issued then
//   flush        until the device has done all of it
#pragma once

#include <memory>

#include "pipeline/device_streams.h"
#include "pipeline/transport.h"

namespace antichain {

// `job` must outlive it, and so must the context behind `messages`. Guards the rank's Progress with MessageStream::failure.
std::unique_ptr<Transport> make_ordered_transport(Transport& job, std::unique_ptr<MessageStream> messages);

}  // namespace antichain
