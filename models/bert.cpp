#include "models/bert.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "layers/activate.h"
#include "layers/add.h"
#include "layers/attention.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/input.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/positions.h"

namespace antichain {
namespace {

const Initialiser bert_init = Initialiser::normal(0.02);

class BertParts {
 public:
  BertParts(Graph& g, const BertTable& table, double dropout, NodeId documents)
      : g_(g), table_(table), dropout_(dropout), documents_(documents) {}

  NodeId dense(std::string name, NodeId x, int64_t out) const {
    return linear(g_, std::move(name), x,
                  {.out = out, .weight_init = bert_init, .bias_init = Initialiser::constant(0)});
  }
  NodeId norm(std::string name, NodeId x) const {
    return layer_norm(g_, std::move(name), x, {.eps = 1e-12f});
  }
  NodeId dropped(std::string name, NodeId x) const {
    return dropout_ > 0 ? dropout(g_, std::move(name), x, dropout_) : x;
  }
  NodeId embedded(std::string name, NodeId ids, int64_t rows, std::optional<int64_t> padding = {}) const {
    return embedding(g_, std::move(name), ids,
                     {.rows = rows, .width = table_.width, .padding = padding, .weight_init = bert_init});
  }

  NodeId block(const std::string& name, NodeId x) const {
    const std::string self = name + ".attention.self.";
    const NodeId q = dense(self + "query", x, table_.width), k = dense(self + "key", x, table_.width);
    const NodeId v = dense(self + "value", x, table_.width);
    NodeId y = attention(g_, name + ".attention.self", q, k, v,
                         {.heads = table_.heads, .dropout = float(dropout_)}, documents_);
    x = to_residual(name + ".attention.output", y, x);
    y = dense(name + ".intermediate.dense", x, table_.hidden);
    return to_residual(name + ".output", gelu(g_, name + ".intermediate.act", y), x);
  }

 private:
  NodeId to_residual(const std::string& name, NodeId y, NodeId x) const {
    y = dropped(name + ".dropout", dense(name + ".dense", y, table_.width));
    return norm(name + ".LayerNorm", add(g_, name + ".add", y, x));
  }

  Graph& g_;
  const BertTable& table_;
  const double dropout_;
  const NodeId documents_;
};

}  // namespace

Graph bert_network(std::string name, const BertTable& table, const ModelOptions& o) {
  const std::string words = "bert.embeddings.word_embeddings", decoder = "cls.predictions.decoder";
  auto state = std::make_shared<StateDict>();
  state->names = {{decoder + ".bias", "cls.predictions.bias"}};
  state->also = {{decoder + ".weight", words + ".weight"}, {decoder + ".bias", decoder + ".bias"}};
  Graph g(std::move(name), Precision::float32, state);
  TokenInputs in = add_token_inputs(g, o);
  const Shape rows = {o.microbatch, o.sequence};
  if (in.documents < 0) in.documents = input_integers(g, "documents", rows);
  const NodeId types = input_integers(g, "token_types", rows);
  const BertParts parts(g, table, *o.dropout, in.documents);
  NodeId x = parts.embedded(words, in.tokens, o.vocabulary, 0);
  x = add(g, "bert.embeddings.add_types", x,
          parts.embedded("bert.embeddings.token_type_embeddings", types, 2));
  const std::string places = "bert.embeddings.position_embeddings";
  const PositionsOptions positions = {.rows = table.positions, .weight_init = bert_init};
  x = in.positions < 0 ? add_positions(g, places, x, positions)
                       : add_positions(g, places, x, positions, in.positions, "bert.embeddings.add");
  x = parts.dropped("bert.embeddings.dropout", parts.norm("bert.embeddings.LayerNorm", x));
  for (int i = 0; i < table.layers; ++i) x = parts.block(fmt::format("bert.encoder.layer.{}", i), x);
  const std::string transform = "cls.predictions.transform.";
  x = gelu(g, transform + "act", parts.dense(transform + "dense", x, table.width));
  x = parts.norm(transform + "LayerNorm", x);
  x = parts.dense(decoder, x, o.vocabulary);
  g.share(decoder + ".weight", words + ".weight");
  add_token_loss(g, in.labels, x, o);
  return g;
}

Graph bert_base(const ModelOptions& options) {
  return bert_network("bert_base", {}, completed(options, usual_bert_base));
}

}  // namespace antichain
