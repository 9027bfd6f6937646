// This is the smallest of the networks that are built as LLaMA is (Touvron et al., "LLaMA: Open and Efficient
// Foundation Language Models", arXiv 2023), trained on short stories: 15 million parameters (Karpathy,
// "llama2.c", 2023), with grouped queries (Ainslie et al., "GQA: Training Generalized Multi-Query Transformer
// Models from Multi-Head Checkpoints", EMNLP 2023).
//
//   x ─ RMSNorm ─ q, k, v ─ rotary positions ─ causal attention ─ o ─ add ─ RMSNorm ─ SwiGLU ─ add
//    └─────────────────────────────────────────────────────────────────┘└────────────────────┘
//
//   6 layers of 6 heads, 288 wide; 3 heads of keys and values; SwiGLU 768 wide: down(silu(gate(x)) · up(x)),
//   Shazeer, "GLU Variants Improve Transformer", arXiv 2020; T = 256 of 32,000 words
//
// Parameters have the names and shapes of Hugging Face's LlamaForCausalLM. The head is the embedding of
// words. Weights start from N(0, 0.02²), those that write to the residual stream from N(0, 0.02² / (2 ·
// layers)).
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_llama = {.dropout = 0, .sequence = 256, .vocabulary = 32000};

// A LlamaTable says how large a network is.
struct LlamaTable {
  int layers = 6, heads = 6, kv_heads = 3;
  int64_t width = 288, hidden = 768;  // of the stream, and within SwiGLU
  double theta = 10000;               // of the rotary positions
  float eps = 1e-5f;
  bool tied = true;  // the head is the embedding of words
};
Graph llama_network(std::string name, const LlamaTable&, const ModelOptions& completed);

Graph llama(const ModelOptions&);

}  // namespace antichain
