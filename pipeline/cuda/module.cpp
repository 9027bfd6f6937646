// How libantichain_cuda.so makes its streams known to the library that loaded it.
#include "pipeline/cuda/streams.h"

// Called when the module registers its backends: see layers/cuda/module.cpp.
extern "C" void antichain_register_streams() {
  using namespace antichain;
  register_device_streams(
      "cuda",
      {.device = cuda::device_name, .copies = cuda::make_copy_stream, .step = cuda::make_step_stream});
}
