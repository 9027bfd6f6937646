// Activation functions work on the elements in memory order, in any layout. Where f(0) is not 0, the padding
// of a blocked layout is cleared afterwards.
#include "layers/activate.h"

#include <algorithm>
#include <optional>

#include "layers/cpu/activate_loops.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/for_each_range.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/read_ahead.h"

namespace antichain::cpu {
namespace {

template <class T>
class ActivateKernel : public Kernel {
 public:
  ActivateKernel(ActivationFunction function, const TensorSpec& x)
      : function_(function), loops_(best_loops<ActivateLoops<T>>()) {
    if (x.layout != Layout::plain && !keeps_zero(function)) padded_.emplace(x);
  }

  void forward(Context& context, const Forward& f) const override {
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    for_each_tile(context, f.y.elements(), [&](int64_t begin, int64_t count) {
      read_ahead(x + begin);
      own_lines(y + begin);
      loops_.forward(function_, x + begin, y + begin, count);
    });
    if (padded_) clear_padding(*padded_, y);
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* kept = (derives_from_y(function_) ? b.y : b.x[0]).data<T>();
    const T* dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    const bool adds = b.into_dx(0) == Into::accumulate;
    for_each_tile(context, b.dy.elements(), [&](int64_t begin, int64_t count) {
      read_ahead(kept + begin);
      read_ahead(dy + begin);
      own_lines(dx + begin);
      loops_.backward(function_, kept + begin, dy + begin, dx + begin, adds, count);
    });
  }

 private:
  // Calls f(first number, numbers) for each tile.
  template <class F>
  static void for_each_tile(Context& context, int64_t count, const F& f) {
    for_each_range(count, context.threads(), [&](int64_t begin, int64_t end) {
      for (; begin < end; begin += tile_numbers) f(begin, std::min(tile_numbers, end - begin));
    });
  }

  const ActivationFunction function_;
  const ActivateLoops<T>& loops_;
  std::optional<Activation> padded_;
};

Lowering lower(const Op& op, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
  const bool from_y = derives_from_y(static_cast<const Activate&>(op).function);
  const Layout layout = accept(offered[0]);
  return {.x = {layout},
          .y = layout,
          .precision = precision,
          .keeps_x = !from_y,
          .keeps_y = from_y,
          .adds_dx = true};
}

}  // namespace

KernelEntry activate_entry() {
  return {.lower = lower, .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<ActivateKernel>(x[0].dtype, static_cast<const Activate&>(op).function, x[0]);
          }};
}

}  // namespace antichain::cpu
