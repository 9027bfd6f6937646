#include "layers/cpu/taps.h"

#include <algorithm>

#include "framework/error.h"

namespace antichain::cpu {
namespace {

void leave_out_idle_taps(Taps& t, int64_t source) {
  const int64_t last_start = t.start + (t.count - 1) * t.stride;
  const int64_t idle = std::clamp<int64_t>(-last_start, 0, t.taps);
  t.start += idle;
  t.weight += idle * t.weight_step;
  t.taps = std::clamp<int64_t>(source - t.start, 0, t.taps - idle);
}

void add(AxisTaps& axis, Taps t) {
  if (t.count < 1) return;
  leave_out_idle_taps(t, axis.source);
  axis.of[axis.classes++] = t;
  if (t.taps == 0) return;
  axis.before = std::max(axis.before, -t.start);
  axis.after = std::max(axis.after, t.start + (t.count - 1) * t.stride + t.taps - axis.source);
}

}  // namespace

AxisTaps forward_taps(int64_t in, int64_t out, int kernel, int stride, int pad) {
  AxisTaps axis{.source = in, .result = out};
  add(axis, {.first = 0,
             .step = 1,
             .count = out,
             .start = -pad,
             .stride = stride,
             .taps = kernel,
             .weight = 0,
             .weight_step = 1});
  return axis;
}

// Input i = first + k · stride with i + pad ≡ tap (modulo stride) reads output (i + pad − r) / stride under
// tap r = tap + m · stride. In ascending order of outputs the taps descend.
AxisTaps backward_taps(int64_t in, int64_t out, int kernel, int stride, int pad) {
  ANTICHAIN_CHECK(stride <= AxisTaps::most, "the classes of inputs fit into their array");
  AxisTaps axis{.source = out, .result = in};
  for (int64_t first = 0; first < std::min<int64_t>(stride, in); ++first) {
    const int64_t tap = (first + pad) % stride;
    const int64_t taps = tap < kernel ? (kernel - tap + stride - 1) / stride : 0;
    add(axis, {.first = first,
               .step = stride,
               .count = (in - first + stride - 1) / stride,
               .start = (first + pad) / stride - (taps - 1),
               .stride = 1,
               .taps = taps,
               .weight = tap + (taps - 1) * stride,
               .weight_step = -stride});
  }
  return axis;
}

bool has_taps(const Conv2dOptions& o) {
  const auto fits = [](int kernel, int stride, int before, int after) {
    return stride <= AxisTaps::most && std::max(before, after) < kernel;
  };
  return o.dilation == Extent(1) && fits(o.kernel.h, o.stride.h, o.pad.before.h, o.pad.after.h) &&
         fits(o.kernel.w, o.stride.w, o.pad.before.w, o.pad.after.w);
}

PlaneTaps forward_taps(const Conv2dOptions& o, const Shape& x, const Shape& y) {
  return {.rows = forward_taps(x[2], y[2], o.kernel.h, o.stride.h, o.pad.before.h),
          .columns = forward_taps(x[3], y[3], o.kernel.w, o.stride.w, o.pad.before.w)};
}

PlaneTaps backward_taps(const Conv2dOptions& o, const Shape& x, const Shape& y) {
  return {.rows = backward_taps(x[2], y[2], o.kernel.h, o.stride.h, o.pad.before.h),
          .columns = backward_taps(x[3], y[3], o.kernel.w, o.stride.w, o.pad.before.w)};
}

}  // namespace antichain::cpu
