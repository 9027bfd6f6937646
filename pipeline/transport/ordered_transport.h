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
#include <span>
#include <vector>

#include "pipeline/device/device_streams.h"
#include "pipeline/transport/transport_over.h"

namespace antichain {

// Turns that go another way (mixed_transport.h) keep their place in the order: later turns are not issued
// before these have passed.
class MessagesInOrder : public TransportOver {
 public:
  using Transport::begin_step;
  using TransportOver::TransportOver;
  // `elsewhere` says for each turn whether it goes another way.
  virtual void begin_step(std::span<const Turn>, const std::vector<bool>& elsewhere) = 0;
  virtual void passed(bool sends, MessageKey, int peer) = 0;
  virtual bool issued(Ticket) const = 0;
  virtual bool all_issued() const = 0;
};

// `below` and the context behind `messages` must outlive it. The watchdog also asks MessageStream::failure.
std::unique_ptr<MessagesInOrder> make_ordered_transport(Transport& below,
                                                        std::unique_ptr<MessageStream> messages);

}  // namespace antichain
