#include "layers/rotary.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Rotary::Rotary(RotaryOptions o) : options(o) {
  if (o.heads < 1 || !(o.theta > 0 && std::isfinite(o.theta)))
    throw Error(fmt::format("{} wants a head at least, and a positive theta", str()));
}

std::string Rotary::str() const {
  return fmt::format("rotary(heads {}, theta {}{})", options.heads, options.theta,
                     options.interleaved ? ", interleaved" : "");
}

Signature Rotary::infer(std::span<const Shape> x) const {
  check_inputs("rotary", x, x.size() == 2 ? 2 : 1, 0);
  if (x[0].rank() != 3 || x[0][2] % (2 * int64_t(options.heads)) != 0)
    throw Error(fmt::format("{} wants samples of positions of channels, an even number for each head, not {}",
                            str(), x[0].str()));
  if (x.size() == 2 && x[1] != Shape{x[0][0], x[0][1]})
    throw Error(fmt::format("{} wants the number of each of {} x {} positions, not {}", str(), x[0][0],
                            x[0][1], x[1].str()));
  Signature s;
  s.y = {.shape = x[0]};
  s.forward_flops = 3 * double(x[0].elements());
  return s;
}

NodeId rotary(Graph& graph, std::string name, NodeId x, RotaryOptions options, NodeId positions) {
  std::vector<NodeId> inputs = {x};
  if (positions >= 0) inputs.push_back(positions);
  return graph.add(std::move(name), std::make_shared<Rotary>(options), std::move(inputs));
}

}  // namespace antichain
