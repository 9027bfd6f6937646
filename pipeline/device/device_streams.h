// This file declares what a device with its own memory offers for moving tensors while it computes: streams,
// and moments in them. A device's module registers these. Without such a module tensors are in host memory
// and need none of this.
//
// A rank computes in one stream, in order. Work in another stream starts `after` a moment of computing, and
// computing continues after a moment of another stream. No call here waits for the device.
#pragma once

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
class Job;

// A Moment is an event: it occurs when all earlier work in a stream is done. A copy is the same event.
using Moment = std::shared_ptr<void>;

class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  virtual Moment computed() = 0;  // when all computing that this rank has started so far is done
  virtual void compute_after(const Moment&) = 0;
  virtual bool reached(const Moment&) = 0;
};

// A CopyStream copies between the device and page-locked host memory, which the device reads and writes
// directly. Both directions run at once.
class CopyStream : public DeviceStream {
 public:
  virtual std::shared_ptr<std::byte> page_locked(int64_t bytes) = 0;
  // The moment is the copy's end. The caller keeps both tensors until then.
  virtual Moment to_host(const Tensor& from, const Tensor& host, const Moment& after) = 0;
  virtual Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) = 0;
};

// A MessageHalf is this rank's half of a message.
struct MessageHalf {
  bool sends = false;  // else it receives
  Tensor tensor;       // sent, or received into
  int peer = 0;        // may be this rank itself, for both halves at once
  Moment after;        // of computing
  int lane = 0;        // the same at both ends
};

// A MessageStream sends messages directly from device to device. A message blocks its lane until the peers
// have reached it; lanes do not wait for each other. Only this stream can interpret its moments.
class MessageStream : public DeviceStream {
 public:
  virtual int lanes() const { return 1; }
  // Starts all of them at once, in both directions and in all lanes. Between two ranks the first send of a
  // lane meets the first receive, and so on. Returns, by lane, the end of its messages, or nullptr where it
  // has none. The caller keeps the tensors until then.
  virtual std::vector<Moment> exchange(std::span<const MessageHalf>) = 0;
  // Returns an error that occurred outside these calls, or "". After an error nothing counts as delivered:
  // work that was running may have ended without its bytes. Any thread may call it, and it does not wait.
  virtual std::string failure() = 0;
  // Aborts all running work, whether the peers come or not. Any other call is an error from then on.
  virtual void give_up() = 0;
};

// The functions of a device, registered once when its module is loaded. The key is the backend's name up to a
// colon: "cuda:tf32" is the device "cuda".
struct DeviceStreams {
  // Returns a name for the context's device that is unique on its host: ranks with equal names share it.
  std::function<std::string(const Context&)> device;
  std::function<std::string()> process;  // names this process by one word that no other has
  std::function<std::unique_ptr<CopyStream>(const Context&)> copies;
  std::function<std::unique_ptr<DeviceStep>(const Context&)> step;  // in the context's stream
  std::function<int()> visible;                                     // devices that this process sees
  std::function<int64_t(const Context&)> free_bytes;  // free memory of the context's device, now
};
void register_device_streams(const std::string& device, DeviceStreams);
const DeviceStreams* device_streams(std::string_view backend);  // nullptr where there are none

// Messages are a separate module, loaded at the first request, because a node may have the device's libraries
// but not NCCL.
struct DeviceMessages {
  std::string by;  // "NCCL 2.28.9"
  // Collective over the ranks of the job, each a process with its own device. Connects this rank with all
  // others. While it waits for them it calls `look`, which may throw. Throws Error where they can't be
  // connected.
  std::function<std::unique_ptr<MessageStream>(const Context&, Job&, const std::function<void()>& look)> make;
};
void register_device_messages(const std::string& device, DeviceMessages);
// Returns nullptr, and sets the reason, where the backend has none.
const DeviceMessages* device_messages(std::string_view backend, std::string& why_not);

}  // namespace antichain
