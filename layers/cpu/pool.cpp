// Max and average pooling process a vector of one channel block at a time. Max pooling stashes, per output
// element, which pixel of its window was the first largest; windows scatter their gradients in row-major
// order.
#include "layers/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/instruction_set.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/plane_sum.h"

namespace antichain::cpu {
namespace {

// Vectors wider than registers are fine here: no function that takes them is called from elsewhere.
#pragma GCC diagnostic ignored "-Wpsabi"

struct MaxPoolPlane {
  Extent kernel, stride, pad;
  int64_t height, width, y_height, y_width;
};

#define ANTICHAIN_LOOPS "layers/cpu/max_pool_loop.inc"
#include "layers/cpu/per_instruction_set.inc"

// A Window is the part of a window that lies in the image, and where in the window that part begins.
struct Window {
  int64_t top, bottom, left, right;  // rows top … bottom − 1, columns left … right − 1 of the image
  int64_t row, column;               // of the window itself, may be negative
  int64_t padded_area;               // cut off at the padded image
};

class PoolKernel : public Kernel {
 public:
  PoolKernel(const Pool& op, const TensorSpec& x, const Shape& y)
      : options_(op.options), x_(x), height_(y[2]), width_(y[3]) {}

 protected:
  Window window(int64_t oy, int64_t ox) const {
    const PoolOptions& o = options_;
    const int64_t row = oy * o.stride.h - o.pad.h, column = ox * o.stride.w - o.pad.w;
    const int64_t bottom = std::min(row + o.kernel.h, x_.height + o.pad.h);
    const int64_t right = std::min(column + o.kernel.w, x_.width + o.pad.w);
    return {std::max<int64_t>(row, 0),
            std::min(bottom, x_.height),
            std::max<int64_t>(column, 0),
            std::min(right, x_.width),
            row,
            column,
            (bottom - row) * (right - column)};
  }

  // Calls f(window, index of its output element's first channel within the plane of y).
  template <class F>
  void for_each_window(F&& f) const {
    for (int64_t oy = 0; oy < height_; ++oy)
      for (int64_t ox = 0; ox < width_; ++ox) f(window(oy, ox), (oy * width_ + ox) * x_.block);
  }

  int64_t y_plane() const { return height_ * width_ * x_.block; }

  const PoolOptions options_;
  const Activation x_;
  const int64_t height_, width_;  // of y
};

template <class T>
class MaxPoolKernel : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  void forward(Context& context, const Forward& f) const override {
    const bool stashes = f.mode == Mode::train && !f.stash.empty();
    const MaxPoolPlane p{options_.kernel, options_.stride, options_.pad, x_.height,
                         x_.width,        height_,         width_};
    with_block(x_.block, [&]<int B>() {
      using Loop = void (*)(const MaxPoolPlane&, const T*, T*, uint8_t*);
      const Loop pool = best<Loop>(
          {baseline::max_pool_plane<B, T>, avx2::max_pool_plane<B, T>, avx512::max_pool_plane<B, T>});
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        uint8_t* at = stashes ? f.stash[0].data<uint8_t>() + plane * y_plane() : nullptr;
        pool(p, f.x[0].data<T>() + plane * x_.plane(), f.y.data<T>() + plane * y_plane(), at);
      });
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const PlaneSum<T> summed(context, x_.plane());
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const uint8_t* at = b.stash[0].data<uint8_t>() + plane * y_plane();
        const T* dy = b.dy.data<T>() + plane * y_plane();
        summed(b.dx[0].data<T>() + plane * x_.plane(), [&](float* dx) {
          for_each_window([&](const Window& w, int64_t out) {
            for (int c = 0; c < B; ++c) {
              const int64_t row = w.row + at[out + c] / options_.kernel.w;
              const int64_t column = w.column + at[out + c] % options_.kernel.w;
              dx[(row * x_.width + column) * B + c] += dy[out + c];
            }
          });
        });
      });
    });
  }
};

template <class T>
class AveragePoolKernel : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  void forward(Context& context, const Forward& f) const override {
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const T* x = f.x[0].data<T>() + plane * x_.plane();
        T* y = f.y.data<T>() + plane * y_plane();
        for_each_window([&](const Window& w, int64_t out) {
          float sum[B] = {};
          for (int64_t r = w.top; r < w.bottom; ++r)
            for (int64_t q = w.left; q < w.right; ++q)
              for (int c = 0; c < B; ++c) sum[c] += x[(r * x_.width + q) * B + c];
          for (int c = 0; c < B; ++c) y[out + c] = T(sum[c] * share(w));
        });
      });
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const PlaneSum<T> summed(context, x_.plane());
    with_block(x_.block, [&]<int B>() {
      for_each_plane(x_.planes(), context.threads(), [&](int64_t plane) {
        const T* dy = b.dy.data<T>() + plane * y_plane();
        summed(b.dx[0].data<T>() + plane * x_.plane(), [&](float* dx) {
          for_each_window([&](const Window& w, int64_t out) {
            for (int64_t r = w.top; r < w.bottom; ++r)
              for (int64_t q = w.left; q < w.right; ++q)
                for (int c = 0; c < B; ++c) dx[(r * x_.width + q) * B + c] += dy[out + c] * share(w);
          });
        });
      });
    });
  }

 private:
  float share(const Window& w) const {
    const int64_t real = (w.bottom - w.top) * (w.right - w.left);
    return 1.0f / float(options_.count_include_pad ? w.padded_area : real);
  }
};

// Accepts any layout and returns it.
Lowering same_layout(std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
  const Layout layout = accept(offered[0]);
  return {.x = {layout},
          .y = layout,
          .precision = precision,
          .workspace_bytes = plane_sum_bytes(x[0], layout, precision)};
}

Lowering lower_max_pool(const Op& op, std::span<const Shape> x, std::span<const Layout> offered,
                        Precision precision) {
  const PoolOptions& o = static_cast<const Pool&>(op).options;
  if (o.kernel.h * o.kernel.w > 256)
    throw Error(
        fmt::format("{} has a window of more than the 256 pixels the cpu engine can number", op.str()));
  Lowering lowering = same_layout(x, offered, precision);
  lowering.stash = {{.shape = op.infer(x).y.shape, .dtype = DType::u8, .layout = lowering.y}};
  return lowering;
}

template <template <class> class PoolKernelFor>
std::unique_ptr<Kernel> make_pool(const Op& op, std::span<const TensorSpec> x, const Lowering&) {
  const Shape y = op.infer({&x[0].shape, 1}).y.shape;
  return make_typed<PoolKernelFor>(x[0].dtype, static_cast<const Pool&>(op), x[0], y);
}

}  // namespace

KernelEntry max_pool_entry() { return {.lower = lower_max_pool, .make = make_pool<MaxPoolKernel>}; }

KernelEntry average_pool_entry() {
  return {.lower = [](const Op&, std::span<const Shape> x, std::span<const Layout> offered,
                      Precision precision) { return same_layout(x, offered, precision); },
          .make = make_pool<AveragePoolKernel>};
}

}  // namespace antichain::cpu
