#include "models/gpt.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "layers/activate.h"
#include "layers/add.h"
#include "layers/attention.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/positions.h"

namespace antichain {
namespace {

constexpr double gpt_deviation = 0.02;

class GptBlocks {
 public:
  GptBlocks(Graph& g, const GptTable& table, const ModelOptions& o, NodeId documents)
      : g_(g), table_(table), dropout_(*o.dropout), documents_(documents) {}

  NodeId dropped(std::string name, NodeId x) const {
    return dropout_ > 0 ? dropout(g_, std::move(name), x, dropout_) : x;
  }

  NodeId block(const std::string& name, NodeId x) const {
    NodeId y = layer_norm(g_, name + ".ln_1", x);
    y = conv1d(name + ".attn.c_attn", y, 3 * table_.width);
    y = attention(g_, name + ".attn", y, {.heads = table_.heads, .causal = true, .dropout = float(dropout_)},
                  documents_);
    y = conv1d(name + ".attn.c_proj", y, table_.width, true);
    x = add(g_, name + ".attn.add", x, dropped(name + ".attn.resid_dropout", y));
    y = layer_norm(g_, name + ".ln_2", x);
    y = conv1d(name + ".mlp.c_fc", y, 4 * table_.width);
    y = gelu(g_, name + ".mlp.act", y, Gelu::tanh);
    y = conv1d(name + ".mlp.c_proj", y, table_.width, true);
    return add(g_, name + ".mlp.add", x, dropped(name + ".mlp.dropout", y));
  }

 private:
  NodeId conv1d(std::string name, NodeId x, int64_t out, bool to_residual = false) const {
    const double deviation = to_residual ? gpt_deviation / std::sqrt(2.0 * table_.layers) : gpt_deviation;
    return linear(g_, std::move(name), x,
                  {.out = out,
                   .in_first = true,
                   .weight_init = Initialiser::normal(deviation),
                   .bias_init = Initialiser::constant(0)});
  }

  Graph& g_;
  const GptTable& table_;
  const double dropout_;
  const NodeId documents_;
};

}  // namespace

Graph gpt_network(std::string name, const GptTable& table, const ModelOptions& o) {
  auto state = std::make_shared<StateDict>();
  if (table.tied) state->also = {{"lm_head.weight", "transformer.wte.weight"}};
  Graph g(std::move(name), Precision::float32, state);
  const TokenInputs in = add_token_inputs(g, o);
  const Initialiser init = Initialiser::normal(gpt_deviation);
  NodeId x = embedding(g, "transformer.wte", in.tokens,
                       {.rows = o.vocabulary, .width = table.width, .weight_init = init});
  const PositionsOptions positions = {.rows = table.positions, .weight_init = init};
  x = in.positions < 0 ? add_positions(g, "transformer.wpe", x, positions)
                       : add_positions(g, "transformer.wpe", x, positions, in.positions, "transformer.add");
  const GptBlocks blocks(g, table, o, in.documents);
  x = blocks.dropped("transformer.drop", x);
  for (int i = 0; i < table.layers; ++i) x = blocks.block(fmt::format("transformer.h.{}", i), x);
  x = layer_norm(g, "transformer.ln_f", x);
  x = linear(g, "lm_head", x, {.out = o.vocabulary, .bias = false, .weight_init = init});
  if (table.tied) g.share("lm_head.weight", "transformer.wte.weight");
  add_token_loss(g, in.labels, x, o);
  return g;
}

Graph gpt2(const ModelOptions& options) {
  return gpt_network("gpt2", {.positions = 1024}, completed(options, usual_gpt2));
}

Graph gpt_baby(const ModelOptions& options) {
  return gpt_network("gpt_baby", {.layers = 6, .heads = 6, .width = 384}, completed(options, usual_gpt_baby));
}

Graph gpt_nano(const ModelOptions& options) {
  return gpt_network("gpt_nano", {.layers = 4, .heads = 4, .width = 128}, completed(options, usual_gpt_nano));
}

}  // namespace antichain
