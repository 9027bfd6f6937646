#include "pipeline/cuda/ipc.h"

#include <cudaTypedefs.h>
#include <fmt/format.h>

#include <utility>

namespace antichain::cuda {
namespace {

// Only the driver's interface tells where an allocation begins. The runtime provides its functions, so
// nothing needs to link the driver.
std::byte* begin_of_allocation(const std::byte* pointer) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  ANTICHAIN_CUDA(
      cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &entry, 3020, cudaEnableDefault, &found));
  ANTICHAIN_CHECK(entry && found == cudaDriverEntryPointSuccess, "every driver has cuMemGetAddressRange");
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  const CUresult code = reinterpret_cast<PFN_cuMemGetAddressRange_v3020>(entry)(
      &begin, &bytes, reinterpret_cast<CUdeviceptr>(pointer));
  ANTICHAIN_CHECK(code == CUDA_SUCCESS, fmt::format("tensors lie in device memory (code {})", int(code)));
  return reinterpret_cast<std::byte*>(begin);
}

std::string key_of(const cudaIpcMemHandle_t& handle) { return {handle.reserved, sizeof handle.reserved}; }

}  // namespace

SharedTensor ShownMemory::place_of(const Tensor& tensor) {
  std::byte* const begin = begin_of_allocation(tensor.raw());
  const auto [it, fresh] = shown_.try_emplace(begin);
  if (fresh) {
    ANTICHAIN_CUDA(cudaIpcGetMemHandle(&it->second.handle, begin));
    it->second.kept = tensor.storage();
  }
  return {it->second.handle, uint64_t(tensor.raw() - begin)};
}

cudaError_t OpenedMemory::open(const SharedTensor& place, std::byte*& pointer) {
  const auto [it, fresh] = opened_.try_emplace(key_of(place.allocation), nullptr);
  if (fresh) {
    void* memory = nullptr;
    // This is the only flag. Where the devices differ, it gives this one access to the other.
    if (const cudaError_t code =
            cudaIpcOpenMemHandle(&memory, place.allocation, cudaIpcMemLazyEnablePeerAccess);
        code != cudaSuccess) {
      opened_.erase(it);
      return code;
    }
    it->second = static_cast<std::byte*>(memory);
  }
  pointer = it->second + place.offset;
  return cudaSuccess;
}

std::byte* OpenedMemory::at(const SharedTensor& place) {
  std::byte* pointer = nullptr;
  ANTICHAIN_CUDA(open(place, pointer));
  return pointer;
}

void OpenedMemory::close() {
  for (const auto& [handle, memory] : opened_) cudaIpcCloseMemHandle(memory);
  opened_.clear();
}

}  // namespace antichain::cuda
