// The fake CUDA runtime's devices (fake_cuda.h) follow the runtime's rules. Every thread has a current
// device, which is 0 until it chooses one. Most calls make the process a context on the current device, if it
// has none there. Where a device is in exclusive-process mode, only one process can have one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <set>
#include <string>

namespace antichain::test::fake_cuda {

struct DeviceRules {
  int devices = 8;                            // that a process sees
  int64_t memory_bytes = int64_t(141) << 30;  // of each
  std::string exclusive;                      // a folder of all processes: in exclusive-process mode
  bool threads_choose = false;                // a call of a thread that has chosen no device breaks a rule
};
void devices(const DeviceRules&);  // for all threads

int current_device();      // of this thread
std::set<int> contexts();  // of this process, so far: their devices

// For the stand-ins themselves: what a call does that needs a context.
cudaError_t enter_context();

}  // namespace antichain::test::fake_cuda
