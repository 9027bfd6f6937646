#include "tests/layers/cuda_on_host/backend.h"

#include <cstring>

#include "framework/backend.h"
#include "framework/cuda/elementwise.h"
#include "framework/cuda/update.h"
#include "framework/error.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/gemm.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain {
namespace cuda {

std::shared_ptr<const ConvolutionPlan> plan_by_cudnn(const Convolution&, Pass, Layout, Factors) {
  return nullptr;
}
std::shared_ptr<const ConvolutionPlan> plan_compiled_weight_gradient(const Convolution&) { return nullptr; }
std::vector<NamedPlan> plans_by_cudnn(const Convolution&, Pass, Layout, Factors) { return {}; }

std::unique_ptr<const Gemm> make_gemm(const GemmShape& shape, Factors) { return make_direct_gemm(shape); }

}  // namespace cuda

namespace {

class CudaOnHost : public Backend {
 public:
  CudaOnHost() {
    kernels_ = cuda::operators(cuda::Factors::exact);
    updates_ = cuda::updates();
  }
  std::string name() const override { return "cuda_on_host"; }
  std::string description() const override { return "the CUDA engine's kernels as loops of the host"; }
  void require(Precision) const override {}
  std::shared_ptr<std::byte> allocate(int64_t bytes) const override { return allocate_host(bytes); }
  void copy(const Context&, const Tensor& from, const Tensor& to) const override {
    ANTICHAIN_CHECK(from.spec() == to.spec(), "a copy keeps shape, type and layout");
    std::memcpy(to.raw(), from.raw(), size_t(from.bytes()));
  }
  std::optional<bool> all_finite(const Context&, const Tensor& t) const override {
    int found = 0;
    with_type(t.dtype(),
              [&]<class T>() { cuda::find_non_finite(nullptr, t.data<T>(), t.elements(), &found); });
    return found == 0;
  }
  void add(Context&, const Tensor& x, const Tensor& y) const override {
    with_type(x.dtype(), [&]<class T>() { cuda::add(nullptr, x.data<T>(), y.data<T>(), x.elements()); });
  }
};

}  // namespace

void register_cuda_on_host() { register_backend(std::make_unique<CudaOnHost>()); }

}  // namespace antichain
