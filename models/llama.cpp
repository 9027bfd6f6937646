#include "models/llama.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "layers/add.h"
#include "layers/attention.h"
#include "layers/elementwise.h"
#include "layers/embedding.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/rotary.h"

namespace antichain {
namespace {

constexpr double llama_deviation = 0.02;

class LlamaBlocks {
 public:
  LlamaBlocks(Graph& g, const LlamaTable& table, const TokenInputs& in, float dropout)
      : g_(g), table_(table), in_(in), dropout_(dropout) {}

  NodeId norm(std::string name, NodeId x) const {
    return rms_norm(g_, std::move(name), x, {.eps = table_.eps});
  }

  NodeId block(const std::string& name, NodeId x) const {
    const std::string self = name + ".self_attn.", mlp = name + ".mlp.";
    NodeId y = norm(name + ".input_layernorm", x);
    const NodeId q = rotated(self, "q", y, table_.heads), k = rotated(self, "k", y, table_.kv_heads);
    const NodeId v = projected(self + "v_proj", y, table_.kv_heads);
    y = attention(g_, name + ".self_attn", q, k, v,
                  {.heads = table_.heads, .kv_heads = table_.kv_heads, .causal = true, .dropout = dropout_},
                  in_.documents);
    x = add(g_, name + ".self_attn.add", x, product(self + "o_proj", y, table_.width, true));
    y = norm(name + ".post_attention_layernorm", x);
    const NodeId gate = product(mlp + "gate_proj", y, table_.hidden);
    const NodeId up = product(mlp + "up_proj", y, table_.hidden);
    y = elementwise(g_, mlp + "act_fn", {gate, up},
                    {.steps = {"sigmoid x0", "multiply x0 s0", "multiply s1 x1"}});
    return add(g_, name + ".mlp.add", x, product(mlp + "down_proj", y, table_.width, true));
  }

 private:
  NodeId product(std::string name, NodeId x, int64_t out, bool to_residual = false) const {
    const double deviation = to_residual ? llama_deviation / std::sqrt(2.0 * table_.layers) : llama_deviation;
    return linear(g_, std::move(name), x,
                  {.out = out, .bias = false, .weight_init = Initialiser::normal(deviation)});
  }
  NodeId projected(std::string name, NodeId x, int heads) const {
    return product(std::move(name), x, table_.width / table_.heads * heads);
  }
  NodeId rotated(const std::string& self, const std::string& what, NodeId x, int heads) const {
    return rotary(g_, self + what + "_rotary", projected(self + what + "_proj", x, heads),
                  {.heads = heads, .theta = table_.theta}, in_.positions);
  }

  Graph& g_;
  const LlamaTable& table_;
  const TokenInputs in_;
  const float dropout_;
};

}  // namespace

Graph llama_network(std::string name, const LlamaTable& table, const ModelOptions& o) {
  auto state = std::make_shared<StateDict>();
  if (table.tied) state->also = {{"lm_head.weight", "model.embed_tokens.weight"}};
  Graph g(std::move(name), Precision::float32, state);
  const TokenInputs in = add_token_inputs(g, o);
  const Initialiser init = Initialiser::normal(llama_deviation);
  NodeId x = embedding(g, "model.embed_tokens", in.tokens,
                       {.rows = o.vocabulary, .width = table.width, .weight_init = init});
  const LlamaBlocks blocks(g, table, in, float(*o.dropout));
  for (int i = 0; i < table.layers; ++i) x = blocks.block(fmt::format("model.layers.{}", i), x);
  x = blocks.norm("model.norm", x);
  x = linear(g, "lm_head", x, {.out = o.vocabulary, .bias = false, .weight_init = init});
  if (table.tied) g.share("lm_head.weight", "model.embed_tokens.weight");
  add_token_loss(g, in.labels, x, o);
  return g;
}

Graph llama(const ModelOptions& options) {
  return llama_network("llama", {}, completed(options, usual_llama));
}

}  // namespace antichain
