// Constant repeats its numbers, which lie on the device, for every sample.
#include "layers/constant.h"

#include <vector>

#include "framework/cuda/launch.h"
#include "layers/cuda/fold_rows.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void repeat(Stream stream, const float* sample, Index of_sample, int64_t count, T* y) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) { y[i] = T(sample[i % of_sample]); });
}

template <class T>
void clear(Stream stream, int64_t count, T* dx) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) { dx[i] = T(0.0f); });
}

template <class T>
class ConstantKernel : public Kernel {
 public:
  explicit ConstantKernel(const Constant& op) : values_(op.options.values) {}

  void prepare(Context& context, std::span<const Tensor>, std::span<const Tensor> prepared) const override {
    put_numbers(stream_of(context), values_.data(), std::ssize(values_), prepared[0].data<float>());
  }
  void forward(Context& context, const Forward& f) const override {
    repeat(stream_of(context), f.prepared[0].data<float>(), index_of(std::ssize(values_)), f.y.elements(),
           f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0] || b.into_dx(0) == Into::accumulate) return;
    clear(stream_of(context), b.dx[0].elements(), b.dx[0].data<T>());
  }

 private:
  const std::vector<float> values_;
};

}  // namespace

KernelEntry constant_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
                const auto& values = static_cast<const Constant&>(op).options.values;
                return Lowering{.x = {offered[0]},
                                .precision = precision,
                                .prepared = {{.shape = {std::ssize(values)}}},
                                .adds_dx = true};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec>, const Lowering& lowering) {
                return make_typed<ConstantKernel>(storage(lowering.precision),
                                                  static_cast<const Constant&>(op));
              }};
}

}  // namespace antichain::cuda
