#include "layers/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Attention::Attention(AttentionOptions o, std::string name) : options(o), node_name(std::move(name)) {
  if (o.heads < 1 || o.kv_heads < 0 || (o.kv_heads > 0 && o.heads % o.kv_heads != 0))
    throw Error(fmt::format("attention '{}' can't share {} heads of keys among {} heads of queries",
                            node_name, o.kv_heads, o.heads));
  if (!(o.dropout >= 0 && o.dropout < 1))
    throw Error(fmt::format("attention '{}' wants 0 <= dropout < 1, not {}", node_name, o.dropout));
  if (o.scale && !std::isfinite(*o.scale))
    throw Error(fmt::format("attention '{}' wants a finite scale, not {}", node_name, *o.scale));
}

std::string Attention::str() const {
  std::string more;
  if (options.kv_heads > 0) more += fmt::format(" to {}", options.kv_heads);
  if (options.causal) more += ", causal";
  if (options.dropout > 0) more += fmt::format(", dropout {} {}", options.dropout, node_name);
  if (options.scale) more += fmt::format(", scale {}", *options.scale);
  return fmt::format("attention(heads {}{})", options.heads, more);
}

AttentionSizes Attention::sizes(std::span<const Shape> x) const {
  if (x.empty() || x.size() > 4)
    throw Error(fmt::format("attention takes q, k and v or all in one, and perhaps documents, not {} inputs",
                            x.size()));
  check_inputs("attention", x, int(x.size()), 0);
  const bool packed = x.size() < 3;
  const size_t tensors = packed ? 1 : 3;
  const Shape &q = x[0], &k = x[packed ? 0 : 1];
  const int64_t heads = options.heads, kv_heads = options.kv_heads > 0 ? options.kv_heads : heads;
  for (size_t i = 0; i < tensors; ++i)
    if (x[i].rank() != 3)
      throw Error(fmt::format("{} wants samples of positions of channels, not {}", str(), x[i].str()));
  const int64_t parts = packed ? heads + 2 * kv_heads : heads, width = q[2] / parts;
  if (q[2] % parts != 0)
    throw Error(fmt::format("{} can't divide {} channels of {} into {} heads", str(), q[2], q.str(), parts));
  if (!packed && (x[1] != Shape{q[0], k[1], kv_heads * width} || x[2] != x[1]))
    throw Error(
        fmt::format("{} wants keys and values of {} samples and {} heads of {} channels, not {} and {}",
                    str(), q[0], kv_heads, width, x[1].str(), x[2].str()));
  const bool documents = x.size() > tensors;
  if (documents && x[tensors] != Shape{q[0], k[1]})
    throw Error(fmt::format("{} wants the number of a document for each of {} x {} positions, not {}", str(),
                            q[0], k[1], x[tensors].str()));
  if (q[1] > k[1] && (options.causal || documents))
    throw Error(fmt::format("{} has {} queries, which can't be the last of {} positions", str(), q[1], k[1]));
  if (q[1] != k[1] && documents && !options.causal)
    throw Error(fmt::format("{} has documents, so it wants as many queries as keys, not {} and {}", str(),
                            q[1], k[1]));
  return {.samples = q[0],
          .heads = heads,
          .kv_heads = kv_heads,
          .queries = q[1],
          .keys = k[1],
          .width = width,
          .packed = packed,
          .documents = documents,
          .scale = options.scale.value_or(float(1 / std::sqrt(double(width))))};
}

Signature Attention::infer(std::span<const Shape> x) const {
  const AttentionSizes s = sizes(x);
  // What a query sees on average, over all of them.
  const double seen = double(s.most_keys(options.causal, 0) + s.most_keys(options.causal, s.queries - 1)) / 2;
  Signature signature;
  signature.y = {.shape = {s.samples, s.queries, s.heads * s.width}};
  // Two products, and five operations of softmax.
  signature.forward_flops = double(s.samples * s.heads * s.queries) * seen * (4 * double(s.width) + 5);
  return signature;
}

namespace {

NodeId add_attention(Graph& graph, std::string name, std::vector<NodeId> inputs, AttentionOptions options,
                     NodeId documents) {
  if (documents >= 0) inputs.push_back(documents);
  auto op = std::make_shared<Attention>(options, name);
  return graph.add(std::move(name), std::move(op), std::move(inputs));
}

}  // namespace

NodeId attention(Graph& graph, std::string name, NodeId q, NodeId k, NodeId v, AttentionOptions options,
                 NodeId documents) {
  return add_attention(graph, std::move(name), {q, k, v}, options, documents);
}

NodeId attention(Graph& graph, std::string name, NodeId qkv, AttentionOptions options, NodeId documents) {
  return add_attention(graph, std::move(name), {qkv}, options, documents);
}

}  // namespace antichain
