// This file is the interface of libantichain_cuda.so to the program that loads it (framework/module.h). It
// registers one backend per Factors: "cuda" for exact float32 and "cuda:tf32" for tensor cores that round the
// factors.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>

#include "framework/cuda/backend.h"
#include "framework/cuda/switches.h"
#include "framework/say.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/operators.h"

namespace {

// cuDNN and cuBLASLt number themselves 9.19.0 as 91900; CUDA's 13.0 is 13000.
std::string version_of(size_t v) { return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100); }
std::string cuda_version_of(int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); }

void say_versions() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  antichain::note(
      fmt::format("versions compiled with: CUDA {}, cuDNN {}, cuBLAS {}; found here: driver for CUDA {}, "
                  "CUDA {}, cuDNN {}, cuBLAS {}",
                  cuda_version_of(CUDART_VERSION), version_of(CUDNN_VERSION), version_of(CUBLAS_VERSION),
                  cuda_version_of(driver), cuda_version_of(runtime), version_of(cudnnGetVersion()),
                  version_of(cublasLtGetVersion())));
}

void register_device(const char* name, const char* words, antichain::cuda::Factors factors) {
  antichain::register_backend(antichain::cuda::make_backend(
      {.name = name,
       .libraries = fmt::format("cuDNN {}, cuBLAS {}, {}", version_of(cudnnGetVersion()),
                                version_of(cublasLtGetVersion()), words) +
                    antichain::cuda::switches_in_words(),
       .operators = antichain::cuda::operators(factors)}));
  antichain::register_alternatives(name, antichain::cuda::conv2d_alternatives(factors));
}

}  // namespace

extern "C" void antichain_register_streams();  // pipeline/cuda: how tensors travel between ranks

extern "C" const char* antichain_module_version() { return ANTICHAIN_VERSION; }

extern "C" const char* antichain_register_module() {
  static const std::string reason = antichain::cuda::why_no_device();
  if (!reason.empty()) return reason.c_str();
  if (antichain::cuda::prints_plans()) say_versions();
  register_device("cuda", "float32", antichain::cuda::Factors::exact);
  register_device("cuda:tf32", "TF32", antichain::cuda::Factors::tf32);
  antichain_register_streams();
  return nullptr;
}
