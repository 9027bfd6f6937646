// The engines that need a CUDA device. Without one every test is skipped, and says so.
#include "tests/layers/engines.h"

#include "framework/error.h"
#include "tests/models/judged_engine.h"

namespace antichain {
namespace harness {

std::vector<Engine> engines() {
  const std::vector<Layout> layouts = {Layout::plain, Layout::nhwc};
  // TF32 keeps 10 bits of each factor's mantissa: rounded to nearest, a factor is off by 2^-11 at most, a product by 2^-10.
  return {{.name = "cuda", .backend = "cuda", .layouts = layouts},
          {.name = "cuda_tf32", .backend = "cuda:tf32", .layouts = layouts, .multiplication = 0x1p-10}};
}

const Backend* find(const Engine& engine, std::string& why) {
  try {
    return &backend(engine.backend);
  } catch (const Error& error) {
    why = std::string("needs a CUDA device: ") + error.what();
    return nullptr;
  }
}

}  // namespace harness

const Backend* judged_engine(std::string& why) { return harness::find(harness::engines()[0], why); }
const Backend* compared_engine(std::string& why) { return judged_engine(why); }

}  // namespace antichain
