#include "tests/pipeline/fakes/fake_devices.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "framework/tensor.h"
#include "tests/pipeline/fakes/fake_cuda.h"

namespace antichain::test::fake_cuda {
namespace {

struct Allocated {
  std::shared_ptr<std::byte> memory;
  int64_t bytes = 0;
  int device = 0;
};

struct Devices {
  std::mutex mutex;
  DeviceRules rules;
  std::map<int, std::set<int>> contexts;  // by process
  std::map<void*, Allocated> allocated;

  int64_t free_bytes(int device) const {
    int64_t left = rules.memory_bytes;
    for (const auto& [at, one] : allocated)
      if (one.device == device) left -= one.bytes;
    return std::max<int64_t>(left, 0);
  }
};
Devices& all() {
  static auto* const devices = new Devices;  // outlives every thread's tensors
  return *devices;
}

thread_local int chosen = -1;

// The lock lasts as long as the process.
bool is_ours_alone(const std::string& folder, int device) {
  const std::string file = folder + "/device-" + std::to_string(device);
  const int lock = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  return lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

void devices(const DeviceRules& rules) {
  std::lock_guard lock(all().mutex);
  all().rules = rules;
  all().contexts.clear();
}

int current_device() { return std::max(chosen, 0); }

std::set<int> contexts() {
  const int process = this_process();
  std::lock_guard lock(all().mutex);
  return all().contexts[process];
}

std::shared_ptr<std::byte> device_memory(int64_t bytes) {
  auto memory = allocate_host(std::max<int64_t>(bytes, 1));
  std::memset(memory.get(), 0, size_t(bytes));
  return memory;
}

int this_process() {
  static std::atomic<int> last{0};
  thread_local const int mine = ++last;
  std::lock_guard lock(all().mutex);
  return all().rules.threads_are_processes ? mine : 0;
}

cudaError_t enter_context() {
  const int process = this_process(), device = current_device();
  bool unchosen = false;
  {
    std::lock_guard lock(all().mutex);
    unchosen = all().rules.threads_choose && chosen < 0;
    std::set<int>& own = all().contexts[process];
    if (!own.contains(device)) {
      if (!all().rules.exclusive.empty() && !is_ours_alone(all().rules.exclusive, device))
        return cudaErrorDevicesUnavailable;
      own.insert(device);
    }
  }
  if (unchosen) break_rule("a thread that has chosen no device uses device 0");
  return cudaSuccess;
}

}  // namespace antichain::test::fake_cuda

using namespace antichain::test::fake_cuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  std::lock_guard lock(all().mutex);
  *count = all().rules.devices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
// Since CUDA 12 it makes the context.
cudaError_t cudaSetDevice(int device) {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  if (device < 0 || device >= devices) return cudaErrorInvalidDevice;
  chosen = device;
  return enter_context();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "Fake GPU");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  allocates();
  Allocated made{device_memory(int64_t(bytes)), int64_t(bytes), current_device()};
  *memory = made.memory.get();
  std::lock_guard lock(all().mutex);
  if (all().free_bytes(made.device) < made.bytes) return cudaErrorMemoryAllocation;
  all().allocated[*memory] = std::move(made);
  return cudaSuccess;
}
// Waits for the device.
cudaError_t cudaFree(void* memory) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  drain();
  Allocated freed;
  std::lock_guard lock(all().mutex);
  freed = std::move(all().allocated.at(memory));
  all().allocated.erase(memory);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  std::lock_guard lock(all().mutex);
  *free = size_t(all().free_bytes(current_device()));
  *total = size_t(all().rules.memory_bytes);
  return cudaSuccess;
}

}  // extern "C"
