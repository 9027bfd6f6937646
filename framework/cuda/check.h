// Checks one CUDA call a line: an error names the call and quotes CUDA's own message.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "framework/error.h"

#define ANTICHAIN_CUDA(call)                                                                   \
  do {                                                                                         \
    if (const cudaError_t status = (call); status != cudaSuccess)                              \
      throw ::antichain::Error(std::string(#call) + " failed: " + cudaGetErrorString(status),  \
                               "run it with CUDA_LAUNCH_BLOCKING=1 to see which call it was"); \
  } while (0)
