// Starts a kernel in a stream and throws the error of this launch. An error that an earlier call left as
// CUDA's last one is ignored here, because this kernel did not cause it.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "framework/cuda/resources.h"
#include "framework/error.h"

namespace antichain::cuda {

// The error's text has the kernel's parameters, which show whose lambda it runs. Unless
// CUDA_LAUNCH_BLOCKING=1, the error may be that of an earlier kernel which broke the device.
template <class... Parameters, class... A>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, Stream stream, const A&... arguments) {
  const auto start = [&](Parameters... values) {
    void* places[] = {&values..., nullptr};
    return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, places, 0, stream);
  };
  if (const cudaError_t status = start(arguments...); status != cudaSuccess) {
    cudaGetLastError();  // the Error below reports it
    throw Error(std::string(cudaGetErrorString(status)) + " at the launch of " + __PRETTY_FUNCTION__,
                "run it with CUDA_LAUNCH_BLOCKING=1 to see whether it was this kernel");
  }
}

}  // namespace antichain::cuda
