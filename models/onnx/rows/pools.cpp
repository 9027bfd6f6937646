// Pools take the maximum or the mean of a window. ReduceMean is here because a mean over all pixels is the
// global pool.
#include <fmt/format.h>

#include <algorithm>

#include "layers/adaptive_pool.h"
#include "layers/global_pool.h"
#include "layers/mean.h"
#include "layers/pool.h"
#include "models/onnx/rows/rows.h"
#include "models/onnx/rows/windows.h"

namespace antichain::onnx::row {
namespace {

PoolOptions pool_options(Translation& t, const Value& x) {
  const Extent kernel = kernel_of(t.node().integers("kernel_shape")), stride = stride_of(t.node());
  if (dilation_of(t.node()) != Extent(1)) throw Unsupported{fmt::format("'{}' with a dilation", t.node().op)};
  const Padding pad = padding_at(t, x, kernel, stride, 1);
  if (pad.before != pad.after)
    throw Unsupported{fmt::format("'{}' with another padding at the ends", t.node().op)};
  return {.kernel = kernel,
          .stride = stride,
          .pad = pad.before,
          .ceil_mode = t.node().integer("ceil_mode", 0) != 0};
}

void adaptive_average_pool(Translation& t) {
  const Value x = t.image(t.input(), "an adaptive pool");
  const std::vector<int64_t> shape = t.shape(x);
  if (t.node().integers("input_size") != std::vector<int64_t>{shape[2], shape[3]})
    throw Unsupported{"two products with matrices that are of another size than the image"};
  const Extent out = extent_of(t.node().integers("output_size"), "a size");
  t.give(0, t.emit(std::make_shared<AdaptiveAveragePool>(out), {x}));
}

}  // namespace

void max_pool(Translation& t) {
  const Value x = t.image(t.input(), "MaxPool");
  t.give(0, t.emit(std::make_shared<Pool>(Pool::Kind::max, pool_options(t, x)), {x}));
}

void average_pool(Translation& t) {
  if (t.node().find("output_size")) return adaptive_average_pool(t);
  Value x = t.padded_input();
  const Padding zeros = x.zeros;
  x.zeros = 0;
  x = t.image(x, "AveragePool");
  PoolOptions o = pool_options(t, x);
  o.count_include_pad = t.node().integer("count_include_pad", 0) != 0 || o.pad == Extent(0);
  if (zeros != Padding(0)) {
    if (zeros.before != zeros.after || o.pad != Extent(0))
      throw Unsupported{"AveragePool behind a padding that differs at the ends, or of its own"};
    o.pad = zeros.before;
  }
  t.give(0, t.emit(std::make_shared<Pool>(Pool::Kind::average, o), {x}));
}

void global_average_pool(Translation& t) {
  t.give(0, t.emit(std::make_shared<GlobalAveragePool>(), {t.image(t.input(), "GlobalAveragePool")}));
}

void reduce_mean(Translation& t) {
  const Value x = t.input();
  std::vector<int> stored;
  for (const int64_t axis : t.integers("axes", 1)) {
    const int at = t.axis(x, axis);
    if (at == 0) throw Unsupported{"a mean over the samples"};
    stored.push_back(x.order[size_t(at)]);
  }
  std::ranges::sort(stored);
  if (stored.empty() || std::ranges::adjacent_find(stored) != stored.end())
    throw Unsupported{"a mean over the samples"};
  if (t.node().integer("keepdims", 1) != 0) {
    if (t.rank(x) == 4 && stored == std::vector<int>{2, 3})
      return t.give(0, t.emit(std::make_shared<GlobalAveragePool>(), {x}, x.order));
    return t.give(0, t.emit(std::make_shared<Mean>(stored, true), {x}, x.order));
  }
  std::vector<int> order;
  for (const int axis : x.order)
    if (std::ranges::find(stored, axis) == stored.end())
      order.push_back(axis - int(std::ranges::count_if(stored, [&](int gone) { return gone < axis; })));
  t.give(0, t.emit(std::make_shared<Mean>(stored), {x}, order));
}

}  // namespace antichain::onnx::row
