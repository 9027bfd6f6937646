// Starts a kernel in a stream and throws what this launch says. An error that another call has left behind as
// CUDA's last one is not looked at: it would be blamed on a kernel that has nothing to do with it.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "framework/cuda/resources.h"
#include "framework/error.h"

namespace antichain::cuda {

// The error's words have the kernel's parameters, and so whose lambda it runs. Unless CUDA_LAUNCH_BLOCKING=1,
// the error may be that of a kernel before it, where that has broken the device.
template <class... Parameters, class... A>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, Stream stream, const A&... arguments) {
  const auto start = [&](Parameters... values) {
    void* places[] = {&values..., nullptr};
    return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, places, 0, stream);
  };
  if (const cudaError_t status = start(arguments...); status != cudaSuccess) {
    cudaGetLastError();  // it is said here
    throw Error(std::string(cudaGetErrorString(status)) + " at the launch of " + __PRETTY_FUNCTION__,
                "run it with CUDA_LAUNCH_BLOCKING=1 to see whether it was this kernel");
  }
}

}  // namespace antichain::cuda
