// One line per CUDA call: an error names the call and CUDA's own words.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "framework/error.h"

#define ANTICHAIN_CUDA(call)                                                                  \
  do {                                                                                        \
    if (const cudaError_t status = (call); status != cudaSuccess)                             \
      throw ::antichain::Error(std::string(#call) + " failed: " + cudaGetErrorString(status), \
                               "check the device with nvidia-smi, or use --device cpu");      \
  } while (0)
