#include "layers/positions.h"

#include <fmt/format.h>

#include <utility>

#include "framework/computed.h"
#include "framework/error.h"
#include "layers/add.h"
#include "layers/elementwise.h"
#include "layers/embedding.h"
#include "layers/slice.h"

namespace antichain {

namespace {

int64_t rows_for(const std::string& name, const Shape& x, const PositionsOptions& o) {
  if (x.rank() != 3) throw Error(fmt::format("'{}' adds positions to N x T x C, not to {}", name, x.str()));
  const int64_t rows = o.rows > 0 ? o.rows : x[1];
  if (rows < x[1])
    throw Error(fmt::format("'{}' has {} positions, and a sample has {}", name, rows, x[1]),
                "give it as many rows, or use shorter sequences");
  return rows;
}

}  // namespace

NodeId add_positions(Graph& graph, std::string name, NodeId x, PositionsOptions o) {
  const Shape& shape = graph.shape(x);
  const int64_t rows = rows_for(name, shape, o);
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

NodeId add_positions(Graph& graph, std::string name, NodeId x, PositionsOptions o, NodeId places,
                     std::string sum) {
  const int64_t rows = rows_for(name, graph.shape(x), o), width = graph.shape(x)[2];
  return add(graph, std::move(sum), x,
             embedding(graph, std::move(name), places,
                       {.rows = rows, .width = width, .weight_init = o.weight_init}));
}

}  // namespace antichain
