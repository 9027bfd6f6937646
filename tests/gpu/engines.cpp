// These are the engines that need a CUDA device. Without one every test is skipped, and says so.
#include "tests/layers/engines.h"

#include "framework/error.h"
#include "tests/models/judged_engine.h"

namespace antichain {
namespace harness {

std::vector<Engine> engines() {
  const std::vector<Layout> layouts = {Layout::plain, Layout::nhwc};
  // Products of bf16 numbers are exact, but tensor cores cut off what a float32 sum can't hold, always
  // downwards (Fasi, Higham, Mikaitis & Pranesh, "Numerical behavior of NVIDIA tensor cores",
  // PeerJ Computer Science 2021): 2^-23 an addition, of which the longest sums here have some thousand, four
  // or more products at a time: 2^-14 in all.
  return {{.name = "cuda", .backend = "cuda", .layouts = layouts},
          {.name = "cuda_tf32", .backend = "cuda:tf32", .layouts = layouts, .multiplication = tf32_product},
          {.name = "cuda_bf16",
           .backend = "cuda",
           .layouts = layouts,
           .multiplication = 0x1p-14,
           .precision = Precision::bf16,
           .rounds_before_bias = true,
           .rounds_weight_gradients = true}};
}

const Backend* find(const Engine& engine, std::string& why) {
  try {
    const Backend& device = backend(engine.backend);
    device.require(engine.precision);
    return &device;
  } catch (const Error& error) {
    why = std::string("needs a CUDA device: ") + error.what();
    return nullptr;
  }
}

}  // namespace harness

const Backend* judged_engine(std::string& why) { return harness::find(harness::engines()[0], why); }
const Backend* compared_engine(std::string& why) { return judged_engine(why); }

}  // namespace antichain
