// Starts a kernel in a stream and throws the error of this launch. An error that an earlier call left as
// CUDA's last one is ignored here, because this kernel did not cause it.
//
// With ANTICHAIN_CUDA_FAST=s7 a kernel's blocks may come while the kernel in front of it ends, so that the
// device has no gap between them (CUDA C++ Programming Guide, "Programmatic Dependent Launch and
// Synchronization"). The kernel itself waits for what the other wrote (wait_for_earlier_kernels,
// framework/cuda/launch.h). That wait is compiled for compute capability 9.0 and later; code of another
// capability does not wait, so it is started the plain way.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "framework/cuda/fast.h"
#include "framework/cuda/resources.h"
#include "framework/error.h"

namespace antichain::cuda {

// Returns whether the code of this kernel that the current device runs waits for earlier kernels by itself.
inline bool waits_by_itself(const void* kernel) {
  constexpr int first = 90;  // compute capability 9.0
  cudaFuncAttributes code{};
  return cudaFuncGetAttributes(&code, kernel) == cudaSuccess && code.ptxVersion >= first;
}

inline cudaError_t start_before_the_last_ends(const void* kernel, dim3 grid, dim3 block, Stream stream,
                                              void** arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.stream = stream;
  config.attrs = &early, config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}

// The error's text has the kernel's parameters, which show whose lambda it runs. Unless
// CUDA_LAUNCH_BLOCKING=1, the error may be that of an earlier kernel which broke the device.
template <class... Parameters, class... A>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, Stream stream, const A&... arguments) {
  const auto start = [&](Parameters... values) {
    void* places[] = {&values..., nullptr};
    const void* const code = reinterpret_cast<const void*>(kernel);
    if (is_fast(Fast::dependent_launch) && waits_by_itself(code))
      return start_before_the_last_ends(code, grid, block, stream, places);
    return cudaLaunchKernel(code, grid, block, places, 0, stream);
  };
  if (const cudaError_t status = start(arguments...); status != cudaSuccess) {
    cudaGetLastError();  // the Error below reports it
    throw Error(std::string(cudaGetErrorString(status)) + " at the launch of " + __PRETTY_FUNCTION__,
                "run it with CUDA_LAUNCH_BLOCKING=1 to see whether it was this kernel");
  }
}

}  // namespace antichain::cuda
