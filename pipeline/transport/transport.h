// A transport moves tensors between ranks. Sends are posted: `send` returns at once and keeps the tensor
// until it is delivered. Receives are posted ahead and waited for later. Every wait tells the watchdog what
// it waits for.
//
// A job's own transport carries tensors in host memory (job_transport.h). Two transports are built on it for
// devices with their own memory: staged_transport.h and ordered_transport.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "framework/error.h"
#include "framework/tensor.h"
#include "pipeline/transport/job.h"

namespace antichain {

// Identifies a message between two ranks within one step. `channel` numbers the distinct (message, sender,
// receiver) triples of the schedule, the same on every rank.
struct MessageKey {
  int channel = 0;
  int microbatch = 0;
  bool operator==(const MessageKey&) const = default;
};

// A Turn is one of a rank's messages in their order: the rank sends it to `peer` or receives it from there.
// Turns of one rank with the same group, other than 0, are next to each other in its order. They start
// together, when all of them are ready. A message to itself is two turns of a group.
struct Turn {
  bool sends = true;  // else it receives
  MessageKey key;
  int peer = 0;
  int group = 0;
  int lane = 0;  // messages of one lane may wait for each other; it is the same at both ends and in a group
};

class Transport {
 public:
  using Ticket = int64_t;

  explicit Transport(Job& job) : job_(job) {}  // the job must outlive it
  virtual ~Transport() = default;
  Job& job() const { return job_; }
  int rank() const { return job_.rank(); }
  int size() const { return job_.size(); }

  // Tensors are in host memory, unless a transport over another one says otherwise.
  virtual void send(MessageKey, int peer, Tensor) = 0;         // keeps the tensor until it is delivered
  virtual Ticket recv(MessageKey, int peer, Tensor into) = 0;  // posted
  // Called once per ticket. Throws Error when the message has another size; by then MPI may have written a
  // longer one beyond `into`, so that the rank must not go on.
  virtual void wait(Ticket) = 0;
  virtual bool arrived(Ticket) = 0;  // whether `wait` would return at once; it must still be called
  virtual void progress() {}         // called between the nodes of a stage
  // Called while the rank waits for its own device. It does what `progress` does, but gives the watchdog no
  // sign of life where the device may be waiting for other ranks.
  virtual void serve() { progress(); }
  virtual void flush() = 0;  // waits until all own sends are delivered

  // Returns how many lanes messages have where they go in one order that all ranks keep
  // (pipeline/simulate/message_order.h), and else 0. With such an order begin_step() gets this rank's part of
  // it, and exactly these messages are sent and received until the next `flush`. A turn takes the lane that
  // it asks for, modulo this number.
  virtual int lanes() const { return 0; }
  bool ordered() const { return lanes() > 0; }
  virtual void begin_step(std::span<const Turn>) {}

  // Called when an exception ends this rank's step: it abandons all messages under way, so that their memory
  // can be freed. No call may follow.
  virtual void give_up() {}

  // How reports name a message ("activation of node layer2.0.add, micro-batch 3"). Called only when a wait
  // has lasted some milliseconds, and when something is wrong.
  using Namer = std::function<std::string(MessageKey, int from, int to)>;
  virtual void name_messages(Namer namer) { namer_ = std::move(namer); }

 protected:
  std::string name_of(MessageKey, int from, int to) const;
  // The Error of a receive on this rank.
  Error wrong_size(MessageKey, int from, int64_t expected_bytes, int64_t got_bytes) const;

 private:
  Job& job_;
  Namer namer_;
};

}  // namespace antichain
