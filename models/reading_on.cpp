#include "models/reading_on.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "framework/error.h"
#include "layers/activate.h"
#include "layers/add.h"
#include "layers/attention.h"
#include "layers/concat.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/embedding.h"
#include "layers/input.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/reshape.h"
#include "layers/rotary.h"
#include "layers/slice.h"
#include "layers/softmax_cross_entropy.h"

namespace antichain {
namespace {

template <class AnOp>
const AnOp* as(const Node& node) {
  return dynamic_cast<const AnOp*>(node.op.get());
}

bool is_one_of(const Node& node, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, node.name) != names.end();
}

// Says whether a node's results at a position depend on that position's inputs alone, or on keys and values.
bool reads_on(const Graph& graph, const Node& node, int64_t positions) {
  const Shape& y = node.signature.y.shape;
  if (node.role() == Role::input)
    return is_one_of(node, {"tokens", "labels", "documents", "positions"}) && y.rank() == 2;
  if (const auto* loss = as<SoftmaxCrossEntropy>(node)) return loss->options.classes_last;
  if (y.rank() < 3 || y[1] != positions) return false;
  const bool of_documents =
      std::ranges::any_of(node.inputs, [&](NodeId id) { return graph[id].name == "documents"; });
  if (const auto* attention = as<Attention>(node)) return attention->options.causal;
  if (of_documents) return false;
  if (const auto* formula = as<Elementwise>(node)) return !formula->options.parameter;
  if (const auto* norm = as<LayerNorm>(node))
    return norm->options.over.rank() <= 1 && !norm->options.channels;
  return as<Activate>(node) || as<Add>(node) || as<Dropout>(node) || as<Embedding>(node) ||
         as<Linear>(node) || as<Rotary>(node);
}

class Reader {
 public:
  Reader(const Graph& whole, int64_t positions, int64_t count)
      : whole_(whole),
        positions_(positions),
        count_(count),
        on_{Graph(whole.model(), whole.precision(), whole.state()), {}} {}

  ReadingOn run() && {
    for (const Node& node : whole_) now_.push_back(add(node));
    return std::move(on_);
  }

 private:
  NodeId add(const Node& node) {
    std::vector<NodeId> inputs;
    for (const NodeId id : node.inputs) inputs.push_back(now_[size_t(id)]);
    std::shared_ptr<const Op> op = node.op;
    if (const auto* input = as<Input>(node); input && node.name != "documents")
      op = std::make_shared<Input>(
          TensorSpec{.shape = {input->spec.shape[0], count_}, .dtype = input->spec.dtype});
    if (as<Rotary>(node) && inputs.size() == 1) inputs.push_back(input("positions", count_));
    if (const auto* attention = as<Attention>(node)) inputs = of_all(node, *attention, inputs);
    return on_.graph.add(node.name, std::move(op), std::move(inputs));
  }

  // Returns the queries of the tokens read now, the keys and the values of all, and the documents.
  std::vector<NodeId> of_all(const Node& node, const Attention& attention, std::vector<NodeId> inputs) {
    if (inputs.size() <= 2) {
      const AttentionSizes s = attention.sizes(std::array{whole_.shape(node.inputs[0])});
      const int64_t keys = s.kv_heads * s.width;
      inputs = split(on_.graph, node.name + ".part", inputs[0], {s.heads * s.width, keys, keys}, 2);
    }
    return {inputs[0], joined(node.name + ".k", inputs[1]), joined(node.name + ".v", inputs[2]),
            input("documents", positions_)};
  }

  // Returns an input of whole numbers, which the whole network may do without.
  NodeId input(const std::string& name, int64_t numbers) {
    const NodeId known = on_.graph.find(name);
    return known >= 0 ? known : input_integers(on_.graph, name, {whole_.microbatch(), numbers});
  }

  NodeId joined(const std::string& name, NodeId x) {
    Graph& g = on_.graph;
    const int64_t samples = g.shape(x)[0], width = g.shape(x)[2];
    const Kept kept{name + ".earlier", name + ".joined"};
    const TensorSpec spec{.shape = {samples, positions_ - count_, width, 1}};
    const NodeId earlier = g.add(kept.input, std::make_shared<Input>(spec), {});
    const NodeId added = reshape(g, name + ".added", x, {count_, width, 1});
    on_.kept.push_back(kept);
    return reshape(g, name + ".all", concat(g, kept.node, {earlier, added}), {positions_, width});
  }

  const Graph& whole_;
  const int64_t positions_, count_;
  ReadingOn on_;
  std::vector<NodeId> now_;  // by those of the whole network
};

}  // namespace

std::optional<ReadingOn> reading_on(const Graph& whole, int64_t count) {
  const NodeId tokens = whole.find("tokens");
  if (tokens < 0) return std::nullopt;
  const int64_t positions = whole.shape(tokens)[1];
  if (std::ranges::any_of(whole, [&](const Node& node) { return !reads_on(whole, node, positions); }))
    return std::nullopt;
  ANTICHAIN_CHECK(count >= 1 && count < positions, "a part of a row is read");
  return Reader(whole, positions, count).run();
}

}  // namespace antichain
