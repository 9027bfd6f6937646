// Slice copies runs of bytes. In a blocked layout it takes whole blocks of channels; where it would cut one,
// the plain layout is requested.
#include "layers/slice.h"

#include <algorithm>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/light_kernels.h"
#include "layers/one_layout.h"

namespace antichain::cpu {
namespace {

template <class T>
class SliceKernel : public Kernel {
 public:
  SliceKernel(const Slice& op, const TensorSpec& x) : runs_(runs_of(op, x)) {}

  void forward(Context& context, const Forward& f) const override {
    const T* from = f.x[0].data<T>();
    T* to = f.y.data<T>();
    for_each_plane(runs_.rows, context.threads(), [&](int64_t row) {
      for (int64_t r = 0; r < runs_.count; ++r)
        std::copy_n(from + in_x(row, r), runs_.run, to + in_y(row, r));
    });
  }

  // The rest of dx is overwritten by −0, to which any number can be added without changing. So the pass of
  // another slice adds to its own part alone.
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* from = b.dy.data<T>();
    T* to = b.dx[0].data<T>();
    const bool adds = b.into_dx(0) == Into::accumulate;
    for_each_plane(runs_.rows, context.threads(), [&](int64_t row) {
      int64_t at = row * runs_.row;
      for (int64_t r = 0; r < runs_.count; ++r) {
        if (!adds) std::fill(to + at, to + in_x(row, r), T(-0.0f));
        at = in_x(row, r) + runs_.run;
        if (adds)
          elementwise_loops<T>().accumulate(from + in_y(row, r), to + in_x(row, r), runs_.run);
        else
          std::copy_n(from + in_y(row, r), runs_.run, to + in_x(row, r));
      }
      if (!adds) std::fill(to + at, to + (row + 1) * runs_.row, T(-0.0f));
    });
  }

 private:
  int64_t in_x(int64_t row, int64_t r) const { return row * runs_.row + runs_.first + r * runs_.stride; }
  int64_t in_y(int64_t row, int64_t r) const { return (row * runs_.count + r) * runs_.run; }

  const SliceRuns runs_;
};

}  // namespace

KernelEntry slice_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
            const Layout layout = accept(offered[0]);
            const bool whole = cuts_no_block(static_cast<const Slice&>(op), x[0], layout);
            return in_one_layout(whole ? layout : Layout::plain, precision);
          },
      .make =
          [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<SliceKernel>(x[0].dtype, static_cast<const Slice&>(op), x[0]);
          }};
}

}  // namespace antichain::cpu
