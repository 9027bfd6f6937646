// A transport moves tensors between ranks. Sends are posted: `send` returns at once and keeps the tensor
// until it is delivered. Receives are posted ahead and waited for later. Nobody waits in silence: every wait
// reports to the watchdog what it waits for.
//
// Implementations: ranks as threads (pipeline/transport/thread_transport.h; one rank alone is one thread),
// and MPI (pipeline/transport/mpi_transport.h). pipeline/transport/solo_transport.h is for code that wants
// one without any job. Over these, four carry the tensors of a device that has its own memory:
// pipeline/transport/staged_transport.h, peer_transport.h, ordered_transport.h and, of the last two each
// where it can, mixed_transport.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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

// One of a rank's messages in their order: it sends the message to `peer` or receives it from there. Turns of
// one rank with the same group, which is not 0, stand next to each other in its order and go together, when
// all of them are ready; a message to itself is two of a group.
struct Turn {
  bool sends = true;  // else it receives
  MessageKey key;
  int peer = 0;
  int group = 0;
  int lane = 0;  // of messages that may wait for each other: the same at both ends, and in a group
};

class Transport {
 public:
  using Ticket = int64_t;

  explicit Transport(Job& job) : job_(job) {}  // the job must outlive it
  virtual ~Transport() = default;
  Job& job() const { return job_; }
  int rank() const { return job_.rank(); }
  int size() const { return job_.size(); }

  // Tensors are in host memory, but where a transport over another one says otherwise.
  virtual void send(MessageKey, int peer, Tensor) = 0;         // kept until delivered
  virtual Ticket recv(MessageKey, int peer, Tensor into) = 0;  // posted
  virtual void wait(Ticket) = 0;     // once per ticket; Error when the message has another size
  virtual bool arrived(Ticket) = 0;  // whether the wait would return at once, which is still to be called
  virtual void progress() {}         // called between the nodes of a stage
  // Called while the rank waits for its own device: as progress, but for a sign of life where that may wait
  // for other ranks.
  virtual void serve() { progress(); }
  virtual void flush() = 0;  // until all own sends are delivered

  // Whether messages go in one order that all ranks keep (pipeline/simulate/message_order.h). If so, each
  // step begins by telling this rank's part of it; what is sent and received until the next `flush` is
  // exactly that.
  virtual bool ordered() const { return false; }
  virtual void begin_step(std::span<const Turn>) {}
  // The lane in which a message between two ranks goes there whose turn asks for `lane`: messages of a rank's
  // lane go one after the other. Nothing: the message waits for those of its own pair of ranks alone.
  virtual std::optional<int> lane_between(int /*from*/, int /*to*/, int /*lane*/) const {
    return std::nullopt;
  }

  // An exception ends this rank's step: what is under way is let go of, so that the memory it uses can be
  // freed. The last call.
  virtual void give_up() {}

  // How reports name a message ("activation of node layer2.0.add, micro-batch 3"). Called only when a wait
  // has lasted some milliseconds, and when something is wrong.
  using Namer = std::function<std::string(MessageKey, int from, int to)>;
  virtual void name_messages(Namer namer) { namer_ = std::move(namer); }

 protected:
  std::string name_of(MessageKey, int from, int to) const;
  // Of a receive here.
  Error wrong_size(MessageKey, int from, int64_t expected_bytes, int64_t got_bytes) const;

 private:
  Job& job_;
  Namer namer_;
};

}  // namespace antichain
