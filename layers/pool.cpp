#include "layers/pool.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Pool::Pool(Kind k, PoolOptions o) : kind(k), options(o) {
  if (o.kernel.h < 1 || o.kernel.w < 1 || o.stride.h < 1 || o.stride.w < 1 || o.pad.h < 0 || o.pad.w < 0)
    throw Error(fmt::format("{} has an option that is not positive", str()));
  // Otherwise a window could lie completely in the padding, and have no maximum.
  if (2 * o.pad.h > o.kernel.h || 2 * o.pad.w > o.kernel.w)
    throw Error(fmt::format("{} pads by more than half its kernel", str()));
}

std::string Pool::str() const {
  const PoolOptions& o = options;
  return fmt::format("{}(kernel {}, stride {}, pad {}{}{})", type(), antichain::str(o.kernel),
                     antichain::str(o.stride), antichain::str(o.pad), o.ceil_mode ? ", ceil" : "",
                     kind == Kind::average && !o.count_include_pad ? ", real pixels only" : "");
}

Signature Pool::infer(std::span<const Shape> x) const {
  check_inputs(type(), x, 1, 4);
  const PoolOptions& o = options;
  const int64_t height = windows(x[0][2], o.kernel.h, o.stride.h, o.pad.h, o.ceil_mode);
  const int64_t width = windows(x[0][3], o.kernel.w, o.stride.w, o.pad.w, o.ceil_mode);
  if (height < 1 || width < 1)
    throw Error(
        fmt::format("a {} x {} window does not fit into an image of {}", o.kernel.h, o.kernel.w, x[0].str()));
  Signature s;
  s.y = {.shape = {x[0][0], x[0][1], height, width}};
  s.forward_flops = double(s.y.shape.elements()) * o.kernel.h * o.kernel.w;
  return s;
}

NodeId max_pool(Graph& graph, std::string name, NodeId x, PoolOptions options) {
  return graph.add(std::move(name), std::make_shared<Pool>(Pool::Kind::max, options), {x});
}

NodeId average_pool(Graph& graph, std::string name, NodeId x, PoolOptions options) {
  return graph.add(std::move(name), std::make_shared<Pool>(Pool::Kind::average, options), {x});
}

}  // namespace antichain
