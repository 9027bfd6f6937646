// Stochastic depth draws a part's word in every thread of the part. Backward draws it again.
#include "layers/stochastic_depth.h"

#include "layers/cuda/move.h"
#include "layers/cuda/operators.h"
#include "layers/one_layout.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void drop_parts(Stream stream, int64_t count, Index of_part, const KeptParts& given, float scale,
                const T* from, T* to, bool adds) {
  for_elements(
      stream, count,
      [=] ANTICHAIN_DEVICE(Index i, float x, float& y) {
        const float kept = given.now().kept(int64_t(i / of_part)) ? x * scale : 0.0f;
        // A term of a sum is rounded for storage before it is added, as where another kernel adds it.
        y = adds ? y + float(T(kept)) : kept;
      },
      read(from), into(to, adds));
}

template <class T>
class StochasticDepthKernel : public Kernel {
 public:
  StochasticDepthKernel(const StochasticDepth& op, const Shape& x)
      : op_(op.p, op.drop, op.node_name), x_(x), of_part_(index_of(x.elements() / parts_of(op, x))) {}

  void forward(Context& context, const Forward& f) const override {
    if (f.mode == Mode::evaluate)
      move_elements(stream_of(context), f.y.elements(), f.x[0].data<T>(), f.y.data<T>(), Into::overwrite);
    else
      apply(context, f.dropout, f.x[0].data<T>(), f.y, false);
  }

  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0])
      apply(context, b.dropout, b.dy.data<T>(), b.dx[0], b.into_dx(0) == Into::accumulate);
  }

 private:
  void apply(Context& context, const DropoutKey& key, const T* from, const Tensor& to, bool adds) const {
    drop_parts(stream_of(context), to.elements(), of_part_, KeptParts(op_, x_, key),
               float(1.0 / (1.0 - op_.p)), from, to.data<T>(), adds);
  }

  const StochasticDepth op_;
  const Shape x_;
  const Index of_part_;
};

}  // namespace

KernelEntry stochastic_depth_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                return in_one_layout(in_parts(static_cast<const StochasticDepth&>(op), layout_of(x[0])),
                                     precision);
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<StochasticDepthKernel>(x[0].dtype, dynamic_cast<const StochasticDepth&>(op),
                                                         x[0].shape);
              }};
}

}  // namespace antichain::cuda
