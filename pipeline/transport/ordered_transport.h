// Tensors straight from device to device, over one stream of messages per rank (NCCL). A message there waits,
// with all behind it, until both ranks have come to it; what keeps that safe is one order that all ranks
// issue in: pipeline/simulate/message_order.h.
//
//   begin_step   this rank's turns, in the order
//   send, recv   the turn is ready, with the moment of computing that it has to wait for; every turn whose
//                predecessors have all been issued is issued, and turns of one group together, with the last
//                of them
//   wait         computing goes on after the message: the host does not wait. By the order the message has
//                been issued then
//   flush        until the device has done all of it
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "pipeline/device/device_streams.h"
#include "pipeline/transport/transport_over.h"

namespace antichain {

// Where some turns go another way (mixed_transport.h), they keep their place in the order: what is behind
// them is not issued before they have passed.
class MessagesInOrder : public TransportOver {
 public:
  using Transport::begin_step;
  using TransportOver::TransportOver;
  // [turn]: goes another way.
  virtual void begin_step(std::span<const Turn>, const std::vector<bool>& elsewhere) = 0;
  virtual void passed(bool sends, MessageKey, int peer) = 0;
  virtual bool issued(Ticket) const = 0;
  virtual bool all_issued() const = 0;
};

// `below` must outlive it, and so must the context behind `messages`. Guards the rank's Progress with
// MessageStream::failure.
std::unique_ptr<MessagesInOrder> make_ordered_transport(Transport& below,
                                                        std::unique_ptr<MessageStream> messages);

}  // namespace antichain
