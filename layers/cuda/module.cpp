// What libantichain_cuda.so is to the program that loads it (framework/module.h): one backend per factors, "cuda" for
// exact float32 and "cuda:tf32" for tensor cores that round the factors.
#include <cublasLt.h>
#include <cudnn.h>
#include <fmt/format.h>

#include "framework/cuda/backend.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/loops.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/skipped_engines.h"

namespace {

void register_device(const char* name, const char* words, antichain::cuda::Factors factors) {
  const size_t v = cudnnGetVersion(), b = cublasLtGetVersion();
  antichain::register_backend(antichain::cuda::make_backend(
      {.name = name,
       .libraries = fmt::format(
           "cuDNN {}.{}.{}, cuBLAS {}.{}.{}, {}{}{}{}", v / 10000, v / 100 % 100, v % 100, b / 10000,
           b / 100 % 100, b % 100, words, antichain::cuda::loops_in_words(),
           antichain::cuda::skipped_in_words(),
           antichain::cuda::compiles_weight_gradients() ? ", weight gradients of bf16 compiled" : ""),
       .operators = antichain::cuda::operators(factors)}));
  antichain::register_alternatives(name, antichain::cuda::conv2d_alternatives(factors));
}

}  // namespace

extern "C" void antichain_register_streams();  // pipeline/cuda: how tensors travel between ranks

extern "C" const char* antichain_module_version() { return ANTICHAIN_VERSION; }

extern "C" const char* antichain_register_module() {
  static const std::string reason = antichain::cuda::why_no_device();
  if (!reason.empty()) return reason.c_str();
  register_device("cuda", "float32", antichain::cuda::Factors::exact);
  register_device("cuda:tf32", "TF32", antichain::cuda::Factors::tf32);
  antichain_register_streams();
  return nullptr;
}
