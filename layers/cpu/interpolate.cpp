// Interpolation processes a vector of one channel block at a time, with tables of what each row and column of
// y reads. Backward gathers, per pixel of x, the gradients of the pixels of y that read it, in row-major
// order.
#include "layers/interpolate.h"

#include <algorithm>
#include <vector>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"
#include "layers/one_layout.h"

namespace antichain::cpu {
namespace {

// The tables of one side of an image.
struct Lines {
  struct Readers {  // the lines of y that read one line of x, with their weights
    int64_t begin;
    std::vector<float> weights;
  };
  std::vector<Between> of_y;
  std::vector<Readers> of_x;

  explicit Lines(const LineMap& map) {
    for (int64_t o = 0; o < map.out; ++o) of_y.push_back(map.at(o));
    for (int64_t i = 0; i < map.in; ++i) {
      Readers readers{map.begin_of(i), {}};
      for (int64_t o = readers.begin; o < map.end_of(i); ++o) readers.weights.push_back(map.weight(i, o));
      of_x.push_back(std::move(readers));
    }
  }
};

template <class T>
class InterpolateKernel : public Kernel {
 public:
  InterpolateKernel(const Interpolate& op, const TensorSpec& x)
      : nearest_(op.options.mode == Interpolation::nearest),
        x_(x),
        rows_(line_maps(op, x.shape).rows),
        columns_(line_maps(op, x.shape).columns) {}

  void forward(Context& context, const Forward& f) const override {
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const T* x = f.x[0].data<T>() + plane * x_.plane();
        T* y = f.y.data<T>() + plane * y_plane();
        for (const Between& r : rows_.of_y) {
          const T *upper = x + r.first * x_.width * B, *lower = x + r.second * x_.width * B;
          for (const Between& q : columns_.of_y) {
            if (nearest_)
              std::copy_n(upper + q.first * B, B, y);
            else
              mix<B>(upper, lower, r.share, q, y);
            y += B;
          }
        }
      });
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const bool adds = b.into_dx(0) == Into::accumulate;
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const T* dy = b.dy.data<T>() + plane * y_plane();
        T* dx = b.dx[0].data<T>() + plane * x_.plane();
        for (const Lines::Readers& rows : rows_.of_x)
          for (const Lines::Readers& columns : columns_.of_x) {
            float sum[B];
            gather<B>(dy, rows, columns, sum);
            // A term of a sum is rounded for storage before it is added.
            for (int c = 0; c < B; ++c) dx[c] = adds ? T(float(dx[c]) + float(T(sum[c]))) : T(sum[c]);
            dx += B;
          }
      });
    });
  }

 private:
  int64_t y_plane() const { return std::ssize(rows_.of_y) * std::ssize(columns_.of_y) * x_.block; }

  template <int B>
  static void mix(const T* upper, const T* lower, float row_share, const Between& column, T* y) {
    const float right = column.share, left = 1.0f - right;
    for (int c = 0; c < B; ++c) {
      const float above = left * upper[column.first * B + c] + right * upper[column.second * B + c];
      const float below = left * lower[column.first * B + c] + right * lower[column.second * B + c];
      y[c] = T((1.0f - row_share) * above + row_share * below);
    }
  }

  template <int B>
  void gather(const T* dy, const Lines::Readers& rows, const Lines::Readers& columns, float* sum) const {
    std::fill_n(sum, B, 0.0f);
    for (size_t r = 0; r < rows.weights.size(); ++r) {
      const T* of_row = dy + ((rows.begin + int64_t(r)) * std::ssize(columns_.of_y) + columns.begin) * B;
      for (const float weight : columns.weights) {
        const float share = rows.weights[r] * weight;
        for (int c = 0; c < B; ++c) sum[c] += share * of_row[c];
        of_row += B;
      }
    }
  }

  const bool nearest_;
  const Activation x_;
  const Lines rows_, columns_;
};

}  // namespace

KernelEntry interpolate_entry() {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout> offered,
                      Precision precision) { return in_one_layout(accept(offered[0]), precision); },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<InterpolateKernel>(x[0].dtype, static_cast<const Interpolate&>(op), x[0]);
              }};
}

}  // namespace antichain::cpu
