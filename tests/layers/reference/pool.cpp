// Max, average and global pooling, window by window.
#include "layers/pool.h"

#include "layers/global_pool.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

// Calls f(n, c, y, x, window) for every output element; window(g) calls g(row, column) for its real pixels.
template <class F>
void for_each_window(const PoolOptions& o, const Image& in, const Image& out, F&& f) {
  for (int64_t n = 0; n < out.n; ++n)
    for (int64_t c = 0; c < out.c; ++c)
      for (int64_t y = 0; y < out.h; ++y)
        for (int64_t x = 0; x < out.w; ++x)
          f(n, c, y, x, [&](auto&& g) {
            for (int64_t r = y * o.stride.h - o.pad.h; r < y * o.stride.h - o.pad.h + o.kernel.h; ++r)
              for (int64_t s = x * o.stride.w - o.pad.w; s < x * o.stride.w - o.pad.w + o.kernel.w; ++s)
                if (in.inside(r, s)) g(r, s);
          });
}

// What an average divides by: the window's pixels that lie in the image or, if they count, in its padding.
int64_t divisor(const PoolOptions& o, const Image& in, int64_t y, int64_t x) {
  const int pad_h = o.count_include_pad ? o.pad.h : 0, pad_w = o.count_include_pad ? o.pad.w : 0;
  int64_t count = 0;
  for (int64_t r = y * o.stride.h - o.pad.h; r < y * o.stride.h - o.pad.h + o.kernel.h; ++r)
    for (int64_t s = x * o.stride.w - o.pad.w; s < x * o.stride.w - o.pad.w + o.kernel.w; ++s)
      count += r >= -pad_h && r < in.h + pad_h && s >= -pad_w && s < in.w + pad_w;
  return count;
}

void forward(const Op& op, const Forward& f) {
  const auto& pool = static_cast<const Pool&>(op);
  const Image in(f.x[0]), out(f.y);
  for_each_window(pool.options, in, out, [&](int64_t n, int64_t c, int64_t y, int64_t x, auto&& window) {
    double largest = -1e300, sum = 0;
    window([&](int64_t r, int64_t s) {
      largest = std::max(largest, in(n, c, r, s));
      sum += in(n, c, r, s);
    });
    const bool max = pool.kind == Pool::Kind::max;
    out(n, c, y, x) = max ? largest : sum / double(divisor(pool.options, in, y, x));
  });
}

void backward(const Op& op, const Backward& b) {
  const auto& pool = static_cast<const Pool&>(op);
  if (!wanted(b.dx, 0, Into::overwrite)) return;
  const Image in(b.x[0]), out(b.y), dx(b.dx[0]), dy(b.dy);
  for_each_window(pool.options, in, out, [&](int64_t n, int64_t c, int64_t y, int64_t x, auto&& window) {
    bool found = false;
    window([&](int64_t r, int64_t s) {
      if (pool.kind == Pool::Kind::average) {
        dx(n, c, r, s) += dy(n, c, y, x) / double(divisor(pool.options, in, y, x));
      } else if (!found && in(n, c, r, s) == out(n, c, y, x)) {
        dx(n, c, r, s) += dy(n, c, y, x);
        found = true;
      }
    });
  });
}

void global_forward(const Op&, const Forward& f) {
  const int64_t pixels = f.x[0].shape()[2] * f.x[0].shape()[3];
  for (int64_t i = 0; i < f.y.elements(); ++i) {
    double sum = 0;
    for (int64_t p = 0; p < pixels; ++p) sum += f.x[0].data<double>()[i * pixels + p];
    f.y.data<double>()[i] = sum / double(pixels);
  }
}

void global_backward(const Op&, const Backward& b) {
  double* dx = wanted(b.dx, 0, Into::overwrite);
  if (!dx) return;
  const int64_t pixels = b.dx[0].elements() / b.dy.elements();
  for (int64_t i = 0; i < b.dx[0].elements(); ++i) dx[i] = b.dy.data<double>()[i / pixels] / double(pixels);
}

}  // namespace

KernelEntry pool() { return entry_of(forward, backward); }
KernelEntry global_average_pool() { return entry_of(global_forward, global_backward); }

}  // namespace antichain::reference
