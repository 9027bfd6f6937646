// Mean sums in double precision, each sum on one thread and in a fixed order. Where neighbouring numbers
// belong to different sums, a tile of sums is computed at once; where they belong to one sum, eight lanes
// share it and are added up at the end.
#include "layers/mean.h"

#include <algorithm>
#include <numeric>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

constexpr int64_t tile = 64, sum_lanes = 8;

template <class T>
class MeanKernel : public Kernel {
 public:
  MeanKernel(const Mean& op, const TensorSpec& x)
      : axes_(mean_axes(op, x)),
        inner_(axes_.sums.strides[2] == 1 ? axes_.sums.extents[2] : 1),
        tiles_((inner_ + tile - 1) / tile),
        count_(double(axes_.terms.elements())) {}

  void forward(Context& context, const Forward& f) const override {
    T* y = f.y.data<T>();
    for_each_tile(context, [&](int64_t first, int64_t sums) {
      const T* x = f.x[0].data<T>() + axes_.sums.at(first);
      double sum[tile] = {};
      if (neighbours_are_terms())
        for_each_term(0, [&](int64_t term) { sum_run(x + term, sum); });
      else
        for_each_term(1, [&](int64_t term) {
          for (int64_t i = 0; i < sums; ++i) sum[i] += float(x[term + i]);
        });
      if (neighbours_are_terms()) sum[0] = std::accumulate(sum, sum + sum_lanes, 0.0);
      for (int64_t i = 0; i < sums; ++i) y[first + i] = T(float(sum[i] / count_));
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* dy = b.dy.data<T>();
    const bool adds = b.into_dx(0) == Into::accumulate;
    for_each_tile(context, [&](int64_t first, int64_t sums) {
      T* dx = b.dx[0].data<T>() + axes_.sums.at(first);
      T share[tile];
      for (int64_t i = 0; i < sums; ++i) share[i] = T(float(float(dy[first + i]) / count_));
      // A term of a sum is rounded for storage before it is added.
      const auto put = [adds](T& to, T fresh) { to = adds ? T(float(to) + float(fresh)) : fresh; };
      if (neighbours_are_terms())
        for_each_term(0, [&](int64_t term) {
          for (int64_t i = 0; i < axes_.terms.extents[1]; ++i) put(dx[term + i], share[0]);
        });
      else
        for_each_term(1, [&](int64_t term) {
          for (int64_t i = 0; i < sums; ++i) put(dx[term + i], share[i]);
        });
    });
  }

 private:
  // Where there is one term, sums are neighbours, too.
  bool neighbours_are_terms() const { return inner_ == 1 && axes_.terms.strides[1] == 1; }

  // Calls f(first, count) for tiles of sums, each a run of sums whose terms are neighbours.
  template <class F>
  void for_each_tile(Context& context, F&& f) const {
    for_each_plane(axes_.sums.elements() / inner_ * tiles_, context.threads(), [&](int64_t t) {
      const int64_t in_run = t % tiles_ * tile;
      f(t / tiles_ * inner_ + in_run, std::min(tile, inner_ - in_run));
    });
  }

  // Calls f(where it lies) for every term of a sum (inner_axes 1), or for every run of neighbours (0).
  template <class F>
  void for_each_term(int inner_axes, F&& f) const {
    const int64_t inner = inner_axes ? axes_.terms.extents[1] : 1;
    for (int64_t a = 0; a < axes_.terms.extents[0]; ++a)
      for (int64_t b = 0; b < inner; ++b) f(a * axes_.terms.strides[0] + b * axes_.terms.strides[1]);
  }

  // Adds a run of neighbouring terms to the lanes.
  void sum_run(const T* x, double* lanes) const {
    const int64_t n = axes_.terms.extents[1], whole = n / sum_lanes * sum_lanes;
    for (int64_t i = 0; i < whole; i += sum_lanes)
      for (int64_t lane = 0; lane < sum_lanes; ++lane) lanes[lane] += float(x[i + lane]);
    for (int64_t i = whole; i < n; ++i) lanes[i - whole] += float(x[i]);
  }

  const MeanAxes axes_;
  const int64_t inner_, tiles_;  // sums that are neighbours, and how many tiles they are
  const double count_;
};

}  // namespace

KernelEntry mean_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
            return lower_mean(static_cast<const Mean&>(op), x[0], accept(offered[0]), precision);
          },
      .make =
          [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<MeanKernel>(x[0].dtype, static_cast<const Mean&>(op), x[0]);
          }};
}

}  // namespace antichain::cpu
