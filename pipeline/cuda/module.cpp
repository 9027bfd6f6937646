// How libantichain_cuda.so makes its streams known to the library that loaded it.
#include <fmt/format.h>

#include <random>

#include "pipeline/cuda/streams.h"

namespace {

// Drawn by the system: processes in containers may have equal numbers.
const std::string& this_process() {
  static const std::string name = [] {
    std::random_device draw;
    return fmt::format("{:08x}{:08x}{:08x}{:08x}", draw(), draw(), draw(), draw());
  }();
  return name;
}

}  // namespace

// Called when the module registers its backends: see layers/cuda/module.cpp.
extern "C" void antichain_register_streams() {
  using namespace antichain;
  register_device_streams(
      "cuda",
      {.device = cuda::device_name,
       .copies = cuda::make_copy_stream,
       .step = cuda::make_step_stream,
       .peers = [](const Context& context) { return cuda::make_peer_stream(context, this_process()); },
       .visible = cuda::visible_devices,
       .free_bytes = cuda::free_device_bytes});
}
