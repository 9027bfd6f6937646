#include "tests/layers/cuda_on_host/backend.h"

#include <cstring>
#include <utility>
#include <vector>

#include "framework/backend.h"
#include "framework/cuda/absorb.h"
#include "framework/cuda/elementwise.h"
#include "framework/cuda/look.h"
#include "framework/cuda/update.h"
#include "framework/error.h"
#include "layers/cuda/convert.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/gemm.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/typed.h"

namespace antichain {
namespace cuda {

namespace {

// Stands in for cuDNN's engines from bf16 to bf16: it sums in float32 and rounds the result once.
class ToBf16 : public ConvolutionPlan {
 public:
  explicit ToBf16(const Convolution& c) : weights_(c.weight.elements()), plan_(direct(c)) {}
  int64_t workspace_bytes() const override {
    return Scratch::rounded(weights_ * int64_t(sizeof(float))) + plan_->workspace_bytes();
  }
  void run(Context& context, const void* x, const void* dw, const void* dy, std::byte* at) const override {
    auto* sums = reinterpret_cast<float*>(at);
    plan_->run(context, x, sums, dy, at + Scratch::rounded(weights_ * int64_t(sizeof(float))));
    convert(stream_of(context), weights_, sums, static_cast<Bf16*>(const_cast<void*>(dw)));
  }

 private:
  static std::shared_ptr<const ConvolutionPlan> direct(Convolution c) {
    c.gradient = DType::f32;
    return plan_directly(c, Pass::weight_gradient);
  }

  const int64_t weights_;
  const std::shared_ptr<const ConvolutionPlan> plan_;
};

}  // namespace

// Only gradients that are rounded to bf16 have a stand-in; all else is done by our own loops.
std::shared_ptr<const ConvolutionPlan> plan_by_cudnn(const Convolution& c, Pass, Factors) {
  return c.gradient == DType::bf16 ? std::make_shared<ToBf16>(c) : nullptr;
}
std::vector<NamedPlan> plans_by_cudnn(const Convolution&, Pass, Factors) { return {}; }

std::unique_ptr<const Gemm> make_gemm(const GemmShape& shape, Factors) { return make_direct_gemm(shape); }

}  // namespace cuda

namespace {

int64_t copies = 0;

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
    ++copies;
    std::memcpy(to.raw(), from.raw(), size_t(from.bytes()));
  }
  std::optional<bool> all_finite(const Context&, const Tensor& t) const override {
    int32_t found = 0;
    const std::vector<cuda::Piece> pieces = cuda::pieces_of({t});
    cuda::look(nullptr, pieces.data(), int64_t(pieces.size()), &found);
    return found == 0;
  }
  std::unique_ptr<Absorption> make_absorption(const Context& context,
                                              std::vector<Absorbed> nodes) const override {
    return cuda::absorb_in_one_launch(context, std::move(nodes));
  }
  void add(Context&, const Tensor& x, const Tensor& y) const override {
    with_type(x.dtype(), [&]<class T>() { cuda::add(nullptr, x.data<T>(), y.data<T>(), x.elements()); });
  }
};

}  // namespace

int64_t copies_on_host() { return copies; }

void register_cuda_on_host() { register_backend(std::make_unique<CudaOnHost>()); }

}  // namespace antichain
