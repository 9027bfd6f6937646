// Computes interpolation by PyTorch's formulas in double precision. Only the rows and columns that the mode
// nearest takes are computed in float32, because a rounding decides between two of them.
#include "layers/interpolate.h"

#include <algorithm>
#include <cmath>

#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

// Calls f(line of x, its weight) for the one or two lines that line `i` of y reads; `in` and `out` are the
// lines of x and y, and `scale` is 0 where a size is given.
template <class F>
void for_each_read(const InterpolateOptions& o, double scale, int64_t in, int64_t out, int64_t i, F&& f) {
  if (o.mode == Interpolation::nearest) {
    float step = scale > 0 ? float(1 / scale) : float(in) / float(out);
    if (out == in || out == 2 * in) step = float(in) / float(out);
    return f(std::min(int64_t(std::floor(float(i) * step)), in - 1), 1.0);
  }
  double position;
  if (o.align_corners)
    position = out > 1 ? double(i) * double(in - 1) / double(out - 1) : 0;
  else
    position = std::max(0.0, (double(i) + 0.5) * (scale > 0 ? 1 / scale : double(in) / double(out)) - 0.5);
  const int64_t first = std::min(int64_t(position), in - 1);
  const double share = position - double(first);
  f(first, 1 - share);
  f(std::min(first + 1, in - 1), share);
}

// Calls f(weight, image, channel, row of y, column of y, row of x, column of x) for all that y reads.
template <class F>
void for_each_term(const Op& op, const Image& x, const Image& y, F&& f) {
  const InterpolateOptions& o = dynamic_cast<const Interpolate&>(op).options;
  const double tall = o.scale ? o.scale->h : 0, wide = o.scale ? o.scale->w : 0;
  for (int64_t r = 0; r < y.h; ++r)
    for (int64_t q = 0; q < y.w; ++q)
      for_each_read(o, tall, x.h, y.h, r, [&](int64_t row, double of_row) {
        for_each_read(o, wide, x.w, y.w, q, [&](int64_t column, double of_column) {
          for (int64_t n = 0; n < x.n; ++n)
            for (int64_t c = 0; c < x.c; ++c) f(of_row * of_column, n, c, r, q, row, column);
        });
      });
}

void interpolate_forward(const Op& op, const Forward& f) {
  const Image x(f.x[0]), y(f.y);
  std::fill_n(f.y.data<double>(), f.y.elements(), 0.0);
  for_each_term(op, x, y,
                [&](double weight, int64_t n, int64_t c, int64_t r, int64_t q, int64_t row, int64_t column) {
                  y(n, c, r, q) += weight * x(n, c, row, column);
                });
}

void interpolate_backward(const Op& op, const Backward& b) {
  if (!wanted(b.dx, 0, Into::overwrite)) return;
  const Image dx(b.dx[0]), dy(b.dy);
  for_each_term(op, dx, dy,
                [&](double weight, int64_t n, int64_t c, int64_t r, int64_t q, int64_t row, int64_t column) {
                  dx(n, c, row, column) += weight * dy(n, c, r, q);
                });
}

}  // namespace

KernelEntry interpolate() { return entry_of(interpolate_forward, interpolate_backward); }

}  // namespace antichain::reference
