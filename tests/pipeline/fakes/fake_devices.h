// The fake CUDA runtime's devices (fake_cuda.h) follow the runtime's rules. Every thread has a current
// device, which is 0 until it chooses one. Most calls make the process a context on the current device, if it
// has none there. Where a device is in exclusive-process mode, only one process can have one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace antichain::test::fake_cuda {

struct DeviceRules {
  int devices = 8;                            // that a process sees
  int64_t memory_bytes = int64_t(141) << 30;  // of each
  std::string exclusive;                      // a folder of all processes: in exclusive-process mode
  bool threads_choose = false;                // a call of a thread that has chosen no device breaks a rule
  bool threads_are_processes = false;
};
void devices(const DeviceRules&);  // for all threads

int current_device();                                     // of this thread
std::set<int> contexts();                                 // of this process, so far: their devices
std::shared_ptr<std::byte> device_memory(int64_t bytes);  // of no device in particular; it holds zeros

// For the stand-ins themselves.
int this_process();
cudaError_t enter_context();  // what a call does that needs a context

}  // namespace antichain::test::fake_cuda
