// Computes max, average, global and adaptive pooling, window by window.
#include "layers/pool.h"

#include <algorithm>
#include <vector>

#include "layers/adaptive_pool.h"
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

// Returns the divisor of an average: the number of the window's pixels that lie in the image or, if they
// count, in its padding.
int64_t divisor(const PoolOptions& o, const Image& in, int64_t y, int64_t x) {
  const int pad_h = o.count_include_pad ? o.pad.h : 0, pad_w = o.count_include_pad ? o.pad.w : 0;
  int64_t count = 0;
  for (int64_t r = y * o.stride.h - o.pad.h; r < y * o.stride.h - o.pad.h + o.kernel.h; ++r)
    for (int64_t s = x * o.stride.w - o.pad.w; s < x * o.stride.w - o.pad.w + o.kernel.w; ++s)
      count += r >= -pad_h && r < in.h + pad_h && s >= -pad_w && s < in.w + pad_w;
  return count;
}

void pool_forward(const Op& op, const Forward& f) {
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

void pool_backward(const Op& op, const Backward& b) {
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

// Calls f(pixel of y, pixel of x, share) for every pixel of every window.
template <class F>
void for_each_share(const Image& x, const Image& y, F&& f) {
  const auto ends_after = [](int64_t begin, int64_t i, int64_t in, int64_t out) {
    return begin * out < (i + 1) * in;  // begin lies before the window's end, (i + 1) in / out
  };
  for (int64_t i = 0; i < y.n * y.c; ++i)
    for (int64_t p = 0; p < y.h; ++p)
      for (int64_t q = 0; q < y.w; ++q) {
        std::vector<int64_t> pixels;
        for (int64_t r = p * x.h / y.h; ends_after(r, p, x.h, y.h); ++r)
          for (int64_t s = q * x.w / y.w; ends_after(s, q, x.w, y.w); ++s)
            pixels.push_back((i * x.h + r) * x.w + s);
        for (int64_t pixel : pixels) f((i * y.h + p) * y.w + q, pixel, 1.0 / double(pixels.size()));
      }
}

void adaptive_forward(const Op&, const Forward& f) {
  const Image x(f.x[0]), y(f.y);
  std::fill_n(y.values, f.y.elements(), 0.0);
  for_each_share(x, y, [&](int64_t out, int64_t in, double share) { y.values[out] += share * x.values[in]; });
}

void adaptive_backward(const Op&, const Backward& b) {
  if (!wanted(b.dx, 0, Into::overwrite)) return;
  const Image dx(b.dx[0]), dy(b.dy);
  for_each_share(dx, dy,
                 [&](int64_t out, int64_t in, double share) { dx.values[in] += share * dy.values[out]; });
}

}  // namespace

KernelEntry pool() { return entry_of(pool_forward, pool_backward); }
KernelEntry global_average_pool() { return entry_of(global_forward, global_backward); }
KernelEntry adaptive_average_pool() { return entry_of(adaptive_forward, adaptive_backward); }

}  // namespace antichain::reference
