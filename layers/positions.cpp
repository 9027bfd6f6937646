#include "layers/positions.h"

#include <fmt/format.h>

#include "framework/computed.h"
#include "framework/error.h"
#include "layers/elementwise.h"
#include "layers/slice.h"

namespace antichain {

NodeId add_positions(Graph& graph, std::string name, NodeId x, PositionsOptions o) {
  const Shape& shape = graph.shape(x);
  if (shape.rank() != 3)
    throw Error(fmt::format("'{}' adds positions to N x T x C, not to {}", name, shape.str()));
  const int64_t rows = o.rows > 0 ? o.rows : shape[1];
  if (rows < shape[1])
    throw Error(fmt::format("'{}' has {} positions, and a sample has {}", name, rows, shape[1]),
                "give it as many rows, or use shorter sequences");
  const ElementwiseOptions sum{.steps = {"add x0 p"}, .parameter = Shape{shape[1], shape[2]}};
  const SliceOptions first{.axis = 1, .begin = 0, .end = shape[1]};
  return graph.add(
      std::move(name),
      std::make_shared<Computed>(ComputedOptions{.of = std::make_shared<Elementwise>(sum),
                                                 .parameters = {{"weight", {rows, shape[2]}, o.weight_init}},
                                                 .steps = {{std::make_shared<Slice>(first), {"weight"}}},
                                                 .values = {{"", 0}}}),
      {x});
}

}  // namespace antichain
