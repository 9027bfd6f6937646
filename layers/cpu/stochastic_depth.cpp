// Stochastic depth scales or clears whole samples, which lie one after the other in every layout. Backward
// draws the same samples again.
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
  StochasticDepthKernel(const StochasticDepth& op, int64_t samples)
      : op_(op.p, op.drop, op.node_name), samples_(samples) {}

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
    const KeptSamples samples(op_, key);
    const int64_t of_sample = into.elements() / samples_;  // padding included
    const float scale = float(1.0 / (1.0 - op_.p));
    T* to = into.data<T>();
    for_each_plane(samples_, context.threads(), [&](int64_t n) {
      const T* x = from + n * of_sample;
      T* y = to + n * of_sample;
      if (samples.kept(n))
        elementwise_loops<T>().scale(x, scale, y, adds, of_sample);
      else if (!adds)
        std::fill_n(y, of_sample, T(0.0f));
    });
  }

  const StochasticDepth op_;
  const int64_t samples_;
};

}  // namespace

KernelEntry stochastic_depth_entry() {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout> offered,
                      Precision precision) { return in_one_layout(accept(offered[0]), precision); },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<StochasticDepthKernel>(x[0].dtype, dynamic_cast<const StochasticDepth&>(op),
                                                         x[0].shape[0]);
              }};
}

}  // namespace antichain::cpu
