// What a device with memory of its own offers for moving tensors beside computing: streams, and moments in them. A device's
// module brings these in; without one, tensors are in host memory and need nothing of the kind.
//
// A rank computes in one stream, in order. Work elsewhere begins `after` a moment of computing, and computing goes on after a
// moment elsewhere. No call here waits for the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

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

// Copies between the device and page-locked host memory, which the device reads and writes by itself. Both directions at once.
class CopyStream : public DeviceStream {
 public:
  virtual std::shared_ptr<std::byte> page_locked(int64_t bytes) = 0;
  // The moment is the copy's end; both tensors are kept by the caller until it comes.
  virtual Moment to_host(const Tensor& from, const Tensor& host, const Moment& after) = 0;
  virtual Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) = 0;
};

// Messages straight from device to device, one after the other: each blocks the stream until both ranks have come to it.
class MessageStream : public DeviceStream {
 public:
  // The moment is the message's end; the tensor is kept by the caller until it comes.
  virtual Moment send(const Tensor&, int peer, const Moment& after) = 0;
  virtual Moment recv(const Tensor& into, int peer, const Moment& after) = 0;
  // From this rank to itself.
  virtual Moment pass(const Tensor& from, const Tensor& to, const Moment& after, const Moment& and_after) = 0;
  // What has gone wrong beside the calls, or ""; the stream is given up then. Called by any thread.
  virtual std::string failure() = 0;
};

// By the backend's name up to a colon: "cuda:tf32" is the device "cuda". Registered when a module is loaded, once.
struct DeviceStreams {
  // Names the device of a context among all of its host: ranks with equal names share it.
  std::function<std::string(const Context&)> device;
  std::function<std::unique_ptr<CopyStream>(const Context&)> copies;
  std::function<std::unique_ptr<DeviceStep>(const Context&)> step;  // in the context's own stream
};
void register_device_streams(const std::string& device, DeviceStreams);
const DeviceStreams* device_streams(std::string_view backend);  // nullptr where there are none

// Messages are a module of their own, loaded when first asked for: a node may have the device's libraries and not NCCL.
struct DeviceMessages {
  std::string by;  // "NCCL 2.28.9"
  // Collective over the ranks of the job, each on a device of its own.
  std::function<std::unique_ptr<MessageStream>(const Context&, Transport& job)> make;
};
void register_device_messages(const std::string& device, DeviceMessages);
const DeviceMessages* device_messages(std::string_view backend,
                                      std::string& why_not);  // nullptr with the reason

}  // namespace antichain
