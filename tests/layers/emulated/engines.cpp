// Lists the CUDA engine's kernels on the emulated device. cuDNN and cuBLAS are left out.
#include "tests/layers/engines.h"

#include <gtest/gtest.h>

#include "tests/layers/cuda_on_host/backend.h"
#include "tests/layers/emulated/device.h"

namespace antichain::harness {

std::vector<Engine> engines() {
  return {{.name = "emulated", .backend = "cuda_on_host", .layouts = {Layout::plain, Layout::nhwc}},
          {.name = "emulated_bf16",
           .backend = "cuda_on_host",
           .layouts = {Layout::plain, Layout::nhwc},
           .precision = Precision::bf16,
           .rounds_before_bias = true,
           .rounds_weight_gradients = true}};
}

const Backend* find(const Engine& engine, std::string&) {
  register_cuda_on_host();
  return &backend(engine.backend);
}

}  // namespace antichain::harness
