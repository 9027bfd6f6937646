#include "layers/gather.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

#include "framework/computed.h"
#include "framework/error.h"
#include "framework/random.h"
#include "layers/check_inputs.h"
#include "layers/elementwise.h"
#include "layers/permute.h"
#include "layers/reshape.h"

namespace antichain {

Gather::Gather(GatherOptions o) : options(std::move(o)) {
  if (options.axis < 1) throw Error(fmt::format("{} would gather the samples: choose an axis from 1", str()));
  if (options.table.empty()) throw Error("gather wants a table of one place at least");
  if (std::ranges::min(options.table) < 0)
    throw Error(
        fmt::format("{} has the place {}, and places begin at 0", str(), std::ranges::min(options.table)));
}

std::string Gather::str() const {
  const std::vector<int64_t>& table = options.table;
  if (table.size() <= 16) return fmt::format("gather(axis {}, {})", options.axis, fmt::join(table, " "));
  const std::string_view bytes(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(int64_t));
  return fmt::format("gather(axis {}, {} places {:016x})", options.axis, table.size(), hash_bytes(bytes));
}

Signature Gather::infer(std::span<const Shape> x) const {
  check_inputs("gather", x, 1, 0);
  if (options.axis >= x[0].rank())
    throw Error(fmt::format("{} wants an axis that {} does not have", str(), x[0].str()));
  if (const int64_t last = std::ranges::max(options.table); last >= x[0][options.axis])
    throw Error(fmt::format("{} wants place {} of axis {} of {}", str(), last, options.axis, x[0].str()));
  Signature s;
  s.y = {.shape = x[0]};
  s.y.shape[options.axis] = int64_t(options.table.size());
  s.forward_flops = double(s.y.shape.elements());  // copies
  return s;
}

GatherPlaces::GatherPlaces(const Gather& op, const Shape& x)
    : outer(std::accumulate(x.begin(), x.begin() + op.options.axis, int64_t(1), std::multiplies())),
      extent(x[op.options.axis]),
      count(std::ssize(op.options.table)),
      inner(x.elements() / (outer * extent)),
      table(op.options.table.begin(), op.options.table.end()),
      starts(size_t(extent) + 1),
      places(size_t(count)) {
  for (const int32_t j : table) ++starts[size_t(j) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::iota(places.begin(), places.end(), 0);
  std::ranges::stable_sort(places, {}, [&](int32_t i) { return table[size_t(i)]; });
}

NodeId gather(Graph& graph, std::string name, NodeId x, GatherOptions options) {
  return graph.add(std::move(name), std::make_shared<Gather>(std::move(options)), {x});
}

NodeId add_relative_bias(Graph& graph, std::string name, NodeId x, RelativeBiasOptions o) {
  const Shape& shape = graph.shape(x);
  if (shape.rank() != 4 || std::ssize(o.table) != shape[2] * shape[3])
    throw Error(fmt::format("'{}' adds {} biases to N x H x L x M, which do not fit {}", name, o.table.size(),
                            shape.str()));
  const Shape bias{shape[1], shape[2], shape[3]};
  const ElementwiseOptions sum{.steps = {"add x0 p"}, .parameter = bias};
  ComputedOptions computed{
      .of = std::make_shared<Elementwise>(sum),
      .parameters = {{o.parameter, {o.rows, shape[1]}, o.init}},
      .steps = {{std::make_shared<Gather>(GatherOptions{.axis = 1, .table = o.table}), {o.parameter}},
                {std::make_shared<Permute>(std::vector{0, 2, 1}), {"s0"}},
                {std::make_shared<Reshape>(std::vector<int64_t>(bias.begin(), bias.end())), {"s1"}}},
      .values = {{"", 2}}};
  return graph.add(std::move(name), std::make_shared<Computed>(std::move(computed)), {x});
}

}  // namespace antichain
