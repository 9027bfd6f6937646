// This file has what CUDA shares between the processes of a host: memory that one process has allocated and
// another copies into, and events that one records and the other's streams wait for.
//
// The rules come from the runtime's reference (cudaIpc...). A handle refers to an allocation, whatever lies
// where in it. A process opens no handle of its own, and may open another's twice, which is counted. All
// processes close memory before it is freed, and likewise an event. Shared events have no timestamps.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstring>
#include <map>
#include <string>

#include "framework/cuda/check.h"
#include "framework/tensor.h"

namespace antichain::cuda {

// A SharedEvent is recorded here, and another rank waits for it.
class SharedEvent {
 public:
  explicit SharedEvent(bool between_processes) {
    const unsigned flags = cudaEventDisableTiming | (between_processes ? cudaEventInterprocess : 0);
    ANTICHAIN_CUDA(cudaEventCreateWithFlags(&event_, flags));
    if (between_processes) ANTICHAIN_CUDA(cudaIpcGetEventHandle(&handle_, event_));
  }
  ~SharedEvent() { cudaEventDestroy(event_); }
  SharedEvent(const SharedEvent&) = delete;
  operator cudaEvent_t() const { return event_; }
  const cudaIpcEventHandle_t& handle() const { return handle_; }

 private:
  cudaEvent_t event_ = nullptr;
  cudaIpcEventHandle_t handle_{};
};

// A SharedTensor tells another process where a tensor lies.
struct SharedTensor {
  cudaIpcMemHandle_t allocation{};
  uint64_t offset = 0;
};

// ShownMemory is memory of this process that others may have opened. It is kept, so that no address is reused
// for other memory.
class ShownMemory {
 public:
  SharedTensor place_of(const Tensor&);

 private:
  struct Shown {
    cudaIpcMemHandle_t handle{};
    std::shared_ptr<std::byte> kept;
  };
  std::map<std::byte*, Shown> shown_;  // by the allocation's beginning
};

// OpenedMemory is another process's memory. Each allocation is opened once.
class OpenedMemory {
 public:
  // Returns an error code, with nothing opened, when it fails.
  cudaError_t open(const SharedTensor&, std::byte*& pointer);
  std::byte* at(const SharedTensor&);
  void close();

 private:
  std::map<std::string, std::byte*> opened_;  // by the handle's bytes
};

}  // namespace antichain::cuda
