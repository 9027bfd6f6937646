// Attention mixes the values of a sequence's positions, each weighted by how well its key fits a query:
// Vaswani et al., "Attention Is All You Need", NeurIPS 2017; several query heads may share a key head:
// Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models", EMNLP 2023.
//
//   q  N x Tq x (heads · D)    k, v  N x Tk x (kv_heads · D): heads lie side by side, as a linear layer
//                              gives them. Query head h reads key head h div (heads / kv_heads).
//   or qkv  N x T x ((heads + 2 kv_heads) · D): queries, then keys, then values, in one tensor
//   documents  N x Tk, int32 (optional): a position attends only to those with its own number; −1 is padding,
//              to which nobody attends and whose y is 0
//   y  N x Tq x (heads · D)    y_i = Σj drop(p_ij) v_j,  p_i = softmax_j(scale · q_i · k_j) over visible j
//
// The queries are the last Tq positions of a sequence of Tk: with `causal` (then Tq ≤ Tk), and with
// `documents` (then so, or Tq = Tk), query i is position i + Tk − Tq. A causal query sees no later position.
//
// Nothing as large as Tq x Tk is kept. Forward keeps each row's largest score and its sum of exponentials
// relative to that (2 x (N · heads) x Tq, float32), and backward computes the probabilities again from them,
// a tile at a time: Dao et al., "FlashAttention", NeurIPS 2022; Dao, "FlashAttention-2", ICLR 2024. With
// δ_i = dy_i · y_i:
//
//   dv_j = Σi drop(p_ij) dy_i    ds_ij = p_ij (drop(dy_i · v_j) − δ_i)
//   dq_i = scale Σj ds_ij k_j    dk_j = scale Σi ds_ij q_i
//
// Dropout zeroes probabilities in training, and divides the others by 1 − dropout. Its mask has the keys of
// layers/dropout.h, so it depends neither on the cut nor on the micro-batch size.
#pragma once

#include <optional>
#include <string>

#include "framework/graph.h"
#include "layers/dropout.h"

namespace antichain {

struct AttentionOptions {
  int heads = 1;
  int kv_heads = 0;  // of keys and values; 0: as many as of queries
  bool causal = false;
  float dropout = 0;                // of probabilities, in training
  std::optional<float> scale = {};  // the default is 1 / sqrt(D)
};
template <class Visit>
void fields(AttentionOptions& o, Visit&& visit) {
  visit("heads", o.heads);
  visit("kv_heads", o.kv_heads);
  visit("causal", o.causal);
  visit("dropout", o.dropout);
  visit("scale", o.scale);
}

// AttentionSizes says what an operator's inputs are.
struct AttentionSizes {
  int64_t samples, heads, kv_heads, queries, keys, width;  // queries: Tq, keys: Tk, width: D
  bool packed, documents;
  float scale;

  int64_t group() const { return heads / kv_heads; }     // query heads that share a key head
  int64_t earlier() const { return keys - queries; }     // positions before the first query
  int64_t most_keys(bool causal, int64_t query) const {  // that it sees, from the first one on
    return causal ? query + earlier() + 1 : keys;
  }
  // Of a sample's mask of dropout. Rows begin at multiples of four, of which one draw makes the words.
  int64_t mask_row() const { return (keys + 3) / 4 * 4; }
  int64_t mask_element(int64_t head, int64_t query) const { return (head * queries + query) * mask_row(); }
};

class Attention : public Op {
 public:
  Attention(AttentionOptions options, std::string node_name);
  std::string_view type() const override { return "attention"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;  // qkv or q, k, v; then perhaps documents
  Wants wants(size_t input, size_t inputs) const override {
    return inputs % 2 == 0 && input + 1 == inputs ? Wants::integers : Wants::numbers;
  }

  // Throws Error where the inputs do not fit.
  AttentionSizes sizes(std::span<const Shape> x) const;
  DropoutMask::Draw draw(const DropoutKey& key) const { return {node_name, double(options.dropout), key}; }
  // Returns what probabilities that are kept are multiplied by.
  float kept_scale() const { return 1 / (1 - options.dropout); }

  const AttentionOptions options;
  const std::string node_name;
};

NodeId attention(Graph&, std::string name, NodeId q, NodeId k, NodeId v, AttentionOptions,
                 NodeId documents = -1);
NodeId attention(Graph&, std::string name, NodeId qkv, AttentionOptions, NodeId documents = -1);

}  // namespace antichain
