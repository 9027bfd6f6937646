// Stochastic depth scales or clears samples, which lie one after the other in every layout, or channels in
// the plain one. Backward draws the same ones again.
#include "layers/stochastic_depth.h"

#include <algorithm>
#include <cstring>

#include "layers/cpu/dnnl.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/for_each_range.h"
#include "layers/cpu/light_kernels.h"
#include "layers/one_layout.h"

namespace antichain::cpu {
namespace {

template <class T>
class StochasticDepthKernel : public Kernel {
 public:
  StochasticDepthKernel(const StochasticDepth& op, const Shape& x)
      : op_(op.p, op.drop, op.node_name), x_(x), parts_(parts_of(op, x)) {}

  void forward(Context& context, const Forward& f) const override {
    if (f.mode == Mode::evaluate)
      std::memcpy(f.y.raw(), f.x[0].raw(), size_t(f.y.bytes()));
    else
      apply(context, f.dropout, f.x[0].data<T>(), f.y, false);
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    apply(context, b.dropout, b.dy.data<T>(), b.dx[0], b.into_dx(0) == Into::accumulate);
  }

 private:
  void apply(Context& context, const DropoutKey& key, const T* from, const Tensor& into, bool adds) const {
    const KeptParts parts(op_, x_, key);
    const int64_t of_part = into.elements() / parts_;  // padding included
    const float scale = float(1.0 / (1.0 - op_.p));
    T* to = into.data<T>();
    for_each_plane(parts_, context.threads(), [&](int64_t i) {
      const T* x = from + i * of_part;
      T* y = to + i * of_part;
      if (parts.kept(i))
        elementwise_loops<T>().scale(x, scale, y, adds, of_part);
      else if (!adds)
        std::fill_n(y, of_part, T(0.0f));
    });
  }

  const StochasticDepth op_;
  const Shape x_;
  const int64_t parts_;
};

}  // namespace

KernelEntry stochastic_depth_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
                return in_one_layout(in_parts(static_cast<const StochasticDepth&>(op), accept(offered[0])),
                                     precision);
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<StochasticDepthKernel>(x[0].dtype, dynamic_cast<const StochasticDepth&>(op),
                                                         x[0].shape);
              }};
}

}  // namespace antichain::cpu
