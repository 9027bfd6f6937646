// What CUDA shares between the processes of a host: memory that one has allocated and another copies into,
// and events that one records and the other's streams wait for.
//
// The rules, from the runtime's reference (cudaIpc...): a handle is an allocation's, whatever lies where in
// it; a process opens no handle of its own; it may open one twice, which counts; memory is closed by all
// before it is freed, an event likewise; shared events keep no time.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstring>
#include <map>
#include <string>

#include "framework/cuda/check.h"
#include "framework/tensor.h"

namespace antichain::cuda {

// An event recorded here, for another rank to wait for.
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

// Where a tensor lies, for another process.
struct Place {
  cudaIpcMemHandle_t allocation{};
  uint64_t offset = 0;
};

// This process's memory that others may have opened. Kept, so that no address comes back as other memory.
class ShownMemory {
 public:
  Place place_of(const Tensor&);

 private:
  struct Shown {
    cudaIpcMemHandle_t handle{};
    std::shared_ptr<std::byte> kept;
  };
  std::map<std::byte*, Shown> shown_;  // by the begin of the allocation
};

// Another process's memory, each allocation opened once.
class OpenedMemory {
 public:
  // Not success: the code, and nothing is opened.
  cudaError_t open(const Place&, std::byte*& pointer);
  std::byte* at(const Place&);
  void close();

 private:
  std::map<std::string, std::byte*> opened_;  // by the handle's bytes
};

}  // namespace antichain::cuda
