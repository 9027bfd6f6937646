#include "tests/pipeline/fakes/fake_ipc.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "tests/pipeline/fakes/fake_cuda_device.h"

namespace antichain::test::fake_cuda {
namespace {

struct Allocation {
  size_t bytes = 0;
  uint64_t id = 0;
  int process = 0;
  int opened = 0;
};
struct Opened {
  std::byte* at = nullptr;
  size_t bytes = 0;
  int count = 0;
};

struct Memory {
  std::mutex mutex;
  IpcRules rules;
  std::map<const std::byte*, Allocation> allocations;
  std::map<std::pair<int, uint64_t>, Opened> opened;  // by process and allocation
  std::set<std::pair<int, int>> access;               // enabled: process, device
  uint64_t last_id = 0;
  std::vector<std::string> broken;

  // The allocation that an address lies in.
  auto around(const void* address) {
    auto it = allocations.upper_bound(static_cast<const std::byte*>(address));
    if (it == allocations.begin()) return allocations.end();
    --it;
    return address < it->first + it->second.bytes ? it : allocations.end();
  }
  auto by_id(uint64_t id) {
    return std::ranges::find_if(allocations, [&](const auto& a) { return a.second.id == id; });
  }
};
Memory& memory() {
  static auto* const all = new Memory;  // outlives every thread's tensors
  return *all;
}

// The mapping is shared, so that it can be mapped once more. Pages are 4 KiB or divide 64 KiB.
size_t whole_pages(int64_t bytes) { return (size_t(std::max<int64_t>(bytes, 1)) + 65535) / 65536 * 65536; }

void release(std::byte* at) {
  Memory& all = memory();
  std::lock_guard lock(all.mutex);
  const auto it = all.allocations.find(at);
  if (it->second.opened > 0) all.broken.push_back("memory is freed that another process has open");
  ::munmap(at, whole_pages(int64_t(it->second.bytes)));
  all.allocations.erase(it);
}

}  // namespace

void ipc(IpcRules rules) {
  std::lock_guard lock(memory().mutex);
  memory().rules = rules;
  memory().access.clear();
}

std::shared_ptr<std::byte> device_memory(int64_t bytes) {
  Memory& all = memory();
  void* const at =
      ::mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  const int process = this_process();
  std::lock_guard lock(all.mutex);
  all.allocations[static_cast<std::byte*>(at)] = {size_t(std::max<int64_t>(bytes, 1)), ++all.last_id,
                                                  process};
  return {static_cast<std::byte*>(at), release};
}

int opened() {
  std::lock_guard lock(memory().mutex);
  return int(memory().opened.size());
}

std::vector<std::string> broken_rules() {
  std::lock_guard lock(memory().mutex);
  return std::exchange(memory().broken, {});
}

int this_process() {
  static std::atomic<int> last{0};
  thread_local const int mine = ++last;
  std::lock_guard lock(memory().mutex);
  return memory().rules.threads_are_processes ? mine : 0;
}

void break_rule(const std::string& rule) {
  std::lock_guard lock(memory().mutex);
  memory().broken.push_back(rule);
}

void check_address(const void* address) {
  const int process = this_process();
  Memory& all = memory();
  std::lock_guard lock(all.mutex);
  const auto it = all.around(address);
  if (it != all.allocations.end() && it->second.process != process)
    all.broken.push_back("memory of another process is used by its address");
}

bool forgets_waits() {
  std::lock_guard lock(memory().mutex);
  return memory().rules.forgets_waits;
}

namespace {

CUresult address_range(CUdeviceptr* begin, size_t* bytes, CUdeviceptr address) {
  std::lock_guard lock(memory().mutex);
  const auto it = memory().around(reinterpret_cast<const void*>(address));
  if (it == memory().allocations.end()) return CUDA_ERROR_NOT_FOUND;
  *begin = reinterpret_cast<CUdeviceptr>(it->first);
  *bytes = it->second.bytes;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace antichain::test::fake_cuda

using namespace antichain::test::fake_cuda;

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* found) {
  const bool known = std::strcmp(symbol, "cuMemGetAddressRange") == 0 && version == 3020;
  *function = known ? reinterpret_cast<void*>(address_range) : nullptr;
  *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* begin) {
  const int process = this_process();
  std::lock_guard lock(memory().mutex);
  const auto it = memory().allocations.find(static_cast<std::byte*>(begin));
  if (it == memory().allocations.end() || it->second.process != process)
    return antichain::test::fake_cuda::failed(cudaErrorInvalidValue);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle->reserved, &it->second.id, sizeof it->second.id);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  const int process = this_process();
  Memory& all = memory();
  std::lock_guard lock(all.mutex);
  if (flags != cudaIpcMemLazyEnablePeerAccess)
    return antichain::test::fake_cuda::failed(cudaErrorInvalidValue);
  if (all.rules.refused) return antichain::test::fake_cuda::failed(cudaErrorMapBufferObjectFailed);
  uint64_t id = 0;
  std::memcpy(&id, handle.reserved, sizeof id);
  auto it = all.by_id(id);
  if (it == all.allocations.end() || it->second.process == process)
    return antichain::test::fake_cuda::failed(cudaErrorInvalidResourceHandle);
  if (all.rules.opens_the_first)
    for (auto other = all.allocations.begin(); other != all.allocations.end(); ++other)
      if (other->second.process == it->second.process && other->second.id < it->second.id) it = other;
  Opened& here = all.opened[{process, it->second.id}];
  if (here.count > 0 && !all.rules.opens_the_first) return cudaErrorAlreadyMapped;  // as some drivers have it
  if (here.count++ == 0) {
    here.bytes = whole_pages(int64_t(it->second.bytes));
    // A size of nothing maps the same pages once more.
    here.at =
        static_cast<std::byte*>(::mremap(const_cast<std::byte*>(it->first), 0, here.bytes, MREMAP_MAYMOVE));
    ++it->second.opened;
  }
  *pointer = here.at;
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  const int process = this_process();
  Memory& all = memory();
  std::lock_guard lock(all.mutex);
  const auto it = std::ranges::find_if(
      all.opened, [&](const auto& o) { return o.first.first == process && o.second.at == pointer; });
  if (it == all.opened.end()) return antichain::test::fake_cuda::failed(cudaErrorInvalidValue);
  if (--it->second.count > 0) return cudaSuccess;
  ::munmap(it->second.at, it->second.bytes);
  if (const auto of = all.by_id(it->first.second); of != all.allocations.end()) --of->second.opened;
  all.opened.erase(it);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrIpcEventSupport ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  std::lock_guard lock(memory().mutex);
  *can = memory().rules.peer_access ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int device, unsigned) {
  const int process = this_process();
  std::lock_guard lock(memory().mutex);
  return memory().access.insert({process, device}).second
             ? cudaSuccess
             : antichain::test::fake_cuda::failed(cudaErrorPeerAccessAlreadyEnabled);
}

}  // extern "C"
