// Constant copies its numbers to every sample, and reads nothing of its input.
#include "layers/constant.h"

#include <algorithm>
#include <vector>

#include "layers/cpu/light_kernels.h"
#include "layers/typed.h"

namespace antichain::cpu {
namespace {

template <class T>
class ConstantKernel : public Kernel {
 public:
  explicit ConstantKernel(const Constant& op) {
    for (const float value : op.sample()) sample_.push_back(T(value));
  }

  void forward(Context&, const Forward& f) const override {
    T* to = f.y.data<T>();
    for (int64_t n = 0; n < f.y.shape()[0]; ++n) to = std::ranges::copy(sample_, to).out;
  }
  void backward(Context&, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0] || b.into_dx(0) == Into::accumulate) return;
    std::fill_n(b.dx[0].raw(), b.dx[0].bytes(), std::byte(0));
  }

 private:
  std::vector<T> sample_;
};

}  // namespace

KernelEntry constant_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
                return Lowering{.x = {offered[0]}, .precision = precision, .adds_dx = true};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec>, const Lowering& lowering) {
                return make_typed<ConstantKernel>(storage(lowering.precision),
                                                  static_cast<const Constant&>(op));
              }};
}

}  // namespace antichain::cpu
