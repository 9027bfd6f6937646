#include "layers/stochastic_depth.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {
namespace {

// A draw for all samples has the key of the batch's first one.
DropoutKey key_of(const StochasticDepth& op, DropoutKey key) {
  if (op.drop == Drop::batch) key.first_sample = 0;
  return key;
}

}  // namespace

StochasticDepth::StochasticDepth(double probability, Drop what, std::string name)
    : p(probability), drop(what), node_name(std::move(name)) {
  if (!(p >= 0 && p < 1))
    throw Error(fmt::format("stochastic depth '{}' wants 0 <= p < 1, not {}", node_name, p));
}

std::string StochasticDepth::str() const {
  return fmt::format("stochastic_depth({}, {}, {})", p, drop_names[size_t(drop)], node_name);
}

Signature StochasticDepth::infer(std::span<const Shape> x) const {
  check_inputs("stochastic_depth", x, 1, 0);
  if (drop == Drop::channel && x[0].rank() < 2)
    throw Error(fmt::format("{} wants samples with channels, not {}", str(), x[0].str()));
  Signature s;
  s.y = {.shape = x[0]};
  s.forward_flops = double(x[0].elements());
  return s;
}

int64_t parts_of(const StochasticDepth& op, const Shape& x) {
  return op.drop == Drop::channel ? x[0] * x[1] : x[0];
}

Layout in_parts(const StochasticDepth& op, Layout layout) {
  return op.drop == Drop::channel ? Layout::plain : layout;
}

KeptParts::KeptParts(const StochasticDepth& op, const Shape& x, const DropoutKey& key)
    : draw_(op.node_name, op.p, key_of(op, key)),
      channels_(parts_of(op, x) / x[0]),
      whole_batch_(op.drop == Drop::batch) {}

NodeId stochastic_depth(Graph& graph, std::string name, NodeId x, double p, Drop drop) {
  auto op = std::make_shared<StochasticDepth>(p, drop, name);
  return graph.add(std::move(name), std::move(op), {x});
}

}  // namespace antichain
