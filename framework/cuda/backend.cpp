// The CUDA backend: device memory, copies, and the element-wise passes that every stage needs whatever its operators
// (gradient sums and the optimiser). Operators add their own kernels to its table.

#include <fmt/format.h>

#include "framework/backend.h"
#include "framework/cuda/check.h"
#include "framework/cuda/elementwise.h"
#include "framework/sgd.h"
#include "framework/version.h"

namespace antichain {
namespace {

class CudaBackend : public Backend {
 public:
  std::string name() const override { return "cuda"; }

  std::string description() const override {
    int device = 0, runtime = 0;
    cudaDeviceProp properties{};
    ANTICHAIN_CUDA(cudaGetDevice(&device));
    ANTICHAIN_CUDA(cudaGetDeviceProperties(&properties, device));
    ANTICHAIN_CUDA(cudaRuntimeGetVersion(&runtime));
    return fmt::format("{}, CUDA {}.{}", properties.name, runtime / 1000, runtime % 1000 / 10);
  }

  std::shared_ptr<std::byte> allocate(int64_t bytes) const override {
    void* memory = nullptr;
    ANTICHAIN_CUDA(cudaMalloc(&memory, size_t(bytes)));
    ANTICHAIN_CUDA(cudaMemset(memory, 0, size_t(bytes)));
    return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); }};
  }

  void copy(const Tensor& from, const Tensor& to) const override {
    ANTICHAIN_CUDA(cudaMemcpy(to.raw(), from.raw(), size_t(from.bytes()), cudaMemcpyDefault));
  }

  void add(Context&, const Tensor& x, const Tensor& y) const override {
    ANTICHAIN_CUDA(cuda::add(x.data<float>(), y.data<float>(), x.elements()));
  }

  void sgd(Context&, const SgdOptions& options, float rate, const Tensor& w, const Tensor& dw,
           const Tensor& momentum) const override {
    ANTICHAIN_CUDA(
        cuda::sgd(options, rate, w.data<float>(), dw.data<float>(), momentum.data<float>(), w.elements()));
  }
};

}  // namespace
}  // namespace antichain

extern "C" const char* antichain_module_version() { return ANTICHAIN_VERSION; }

extern "C" const char* antichain_register_module() {
  int devices = 0;
  // Without a driver the count is left unset: any error means there is no device.
  if (const cudaError_t status = cudaGetDeviceCount(&devices); status != cudaSuccess)
    return cudaGetErrorString(status);
  if (devices == 0) return "this machine has no CUDA device";
  antichain::register_backend(std::make_unique<antichain::CudaBackend>());
  return nullptr;
}
