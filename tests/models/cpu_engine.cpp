// The tests of whole models judge this engine in this executable: the CPU.
#include "layers/cpu/backend.h"
#include "tests/layers/cuda_on_host/backend.h"
#include "tests/models/judged_engine.h"

namespace antichain {

const Backend* judged_engine(std::string&) {
  register_cpu_backend();
  return &backend("cpu");
}

const Backend* compared_engine(std::string&) {
  register_cuda_on_host();
  return &backend("cuda_on_host");
}

}  // namespace antichain
