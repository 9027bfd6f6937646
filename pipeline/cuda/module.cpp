// libantichain_cuda.so registers its streams here with the library that loaded it.
#include <fmt/format.h>

#include <random>

#include "pipeline/cuda/streams.h"

namespace {

// The system draws the name at random, because processes in different containers may have equal numbers.
std::string this_process() {
  static const std::string name = [] {
    std::random_device draw;
    return fmt::format("{:08x}{:08x}{:08x}{:08x}", draw(), draw(), draw(), draw());
  }();
  return name;
}

}  // namespace

// The module calls this when it registers its backends: see layers/cuda/module.cpp.
extern "C" void antichain_register_streams() {
  using namespace antichain;
  register_device_streams("cuda", {.device = cuda::device_name,
                                   .process = this_process,
                                   .copies = cuda::make_copy_stream,
                                   .step = cuda::make_step_stream,
                                   .visible = cuda::visible_devices,
                                   .free_bytes = cuda::free_device_bytes});
}
