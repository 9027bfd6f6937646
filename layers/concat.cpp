#include "layers/concat.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Signature Concat::infer(std::span<const Shape> x) const {
  check_inputs("concat", x, std::max(1, int(x.size())), 4);
  Shape y = x[0];
  for (const Shape& next : x.subspan(1)) {
    if (next[0] != y[0] || next[2] != y[2] || next[3] != y[3])
      throw Error(
          fmt::format("concat cannot join {} to {}: only channels may differ", next.str(), x[0].str()));
    y[1] += next[1];
  }
  Signature s;
  s.y = {.shape = y};
  return s;
}

NodeId concat(Graph& graph, std::string name, std::vector<NodeId> x) {
  return graph.add(std::move(name), std::make_shared<Concat>(), std::move(x));
}

}  // namespace antichain
