// What a device with memory of its own offers for moving tensors beside computing: streams, and moments in
// them. A device's module brings these in; without one, tensors are in host memory and need nothing of the
// kind.
//
// A rank computes in one stream, in order. Work elsewhere begins `after` a moment of computing, and computing
// goes on after a moment elsewhere. No call here waits for the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor.h"

namespace antichain {

class Context;
class DeviceStep;
class Transport;

// Comes when all work that was in a stream before it is done. Copies are the same moment.
using Moment = std::shared_ptr<void>;

class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  virtual Moment computed() = 0;  // all that this rank has started computing so far
  virtual void compute_after(const Moment&) = 0;
  virtual bool reached(const Moment&) = 0;
};

// Copies between the device and page-locked host memory, which the device reads and writes by itself. Both
// directions at once.
class CopyStream : public DeviceStream {
 public:
  virtual std::shared_ptr<std::byte> page_locked(int64_t bytes) = 0;
  // The moment is the copy's end; both tensors are kept by the caller until it comes.
  virtual Moment to_host(const Tensor& from, const Tensor& host, const Moment& after) = 0;
  virtual Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) = 0;
};

// This rank's half of a message.
struct MessageHalf {
  bool sends = false;  // else it receives
  Tensor tensor;       // sent, or received into
  int peer = 0;        // to or from: may be this rank, of both halves at once
  Moment after;        // of computing
  int lane = 0;        // the same at both ends
};

// Messages straight from device to device. A message blocks its lane until the peers have come to it; lanes
// do not wait for each other. Of this stream's moments only it knows what they are.
class MessageStream : public DeviceStream {
 public:
  virtual int lanes() const { return 1; }
  // Begins all of them at once, in both directions and in all lanes; between two ranks the first send of a
  // lane meets the first receive, and so on. By lane, the end of its messages: nullptr where it has none.
  // Tensors are kept by the caller until then.
  virtual std::vector<Moment> exchange(std::span<const MessageHalf>) = 0;
  // What has gone wrong beside the calls, or "". Nothing counts as delivered from then on: what was under way
  // may have ended without its bytes. Called by any thread, and waits for nothing.
  virtual std::string failure() = 0;
  // What is under way ends where it is, whether the peers come or not; any other call is an error from then
  // on.
  virtual void give_up() = 0;
};

// What one rank of a host tells another about a buffer, in a message's bytes. Means nothing to anybody else.
using PeerNote = std::array<std::byte, 160>;

// Copies into memory that other ranks of this host have shown, processes or threads, straight from device to
// device:
//
//   receiver   show     the buffer, free once all that was computed so far is done
//   sender     write    copies into it, after that and after a moment of its own
//   receiver   written  the moment at which the copy is there
//
// Each note goes to the peer and is used there once. What was shown is not freed before everybody has closed
// it.
class PeerStream : public DeviceStream {
 public:
  // Text without line breaks, by which another rank of the host finds out whether it can write here.
  virtual std::string introduction() = 0;
  // Why this rank can't write what the peer will show, or "": from then on it can.
  virtual std::string reach(int peer, const std::string& introduction) = 0;

  virtual PeerNote show(int peer, const Tensor& into) = 0;
  // The moment is the copy's end; the tensor is kept by the caller until it comes.
  virtual Moment write(int peer, const Tensor& from, const PeerNote& shown, const Moment& after,
                       PeerNote& written) = 0;
  // Kept by the caller until it comes: what goes with it is used again then.
  virtual Moment written(int peer, const PeerNote&) = 0;

  // At the end, when nothing is under way any more: lets go of what the others have shown; then, when all
  // ranks have, of what it has shown itself. Without both, that is left to the end of the process.
  virtual void close() = 0;
  virtual void all_closed() = 0;
};

// By the backend's name up to a colon: "cuda:tf32" is the device "cuda". Registered when a module is loaded,
// once.
struct DeviceStreams {
  // Names the device of a context among all of its host: ranks with equal names share it.
  std::function<std::string(const Context&)> device;
  std::function<std::string()> process;  // and this process; empty: ranks are processes
  std::function<std::unique_ptr<CopyStream>(const Context&)> copies;
  std::function<std::unique_ptr<DeviceStep>(const Context&)> step;   // in the context's own stream
  std::function<std::unique_ptr<PeerStream>(const Context&)> peers;  // empty: it has none
  std::function<int()> visible;                                      // devices that this process sees
  std::function<int64_t(const Context&)> free_bytes;  // of the memory of the context's device, now
};
void register_device_streams(const std::string& device, DeviceStreams);
const DeviceStreams* device_streams(std::string_view backend);  // nullptr where there are none

// Messages are a module of their own, loaded when first asked for: a node may have the device's libraries and
// not NCCL.
struct DeviceMessages {
  std::string by;  // "NCCL 2.28.9"
  // Collective over the ranks of the job, each a process with a device of its own. Connects this rank with
  // `peers`, whom it will exchange messages with, and who name it, too; calls `look` while it waits for them,
  // which may throw. Error where that can't be done.
  std::function<std::unique_ptr<MessageStream>(const Context&, Transport& job, const std::vector<int>& peers,
                                               const std::function<void()>& look)>
      make;
};
void register_device_messages(const std::string& device, DeviceMessages);
// nullptr, with the reason, where it has none.
const DeviceMessages* device_messages(std::string_view backend, std::string& why_not);

}  // namespace antichain
