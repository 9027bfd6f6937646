// libantichain_nccl.so presents itself to the program that loads it: see framework/module.h.
#include "pipeline/cuda/streams.h"

extern "C" const char* antichain_module_version() { return ANTICHAIN_VERSION; }

extern "C" const char* antichain_register_module() {
  using namespace antichain;
  register_device_messages("cuda", {.by = cuda::nccl_version(), .make = cuda::make_nccl_stream});
  return nullptr;
}
