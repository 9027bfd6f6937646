// These are GPT-2 (Radford, Wu, Child, Luan, Amodei & Sutskever, "Language Models are Unsupervised Multitask
// Learners", OpenAI 2019) and the two small ones of nanoGPT (Karpathy, 2022), each a decoder of blocks that
// normalise before attention and before the two-layer network, with learned positions.
//
//              layers  heads  width   T       words     positions
//   gpt2         12     12     768   1,024   50,257     1,024, so that T may be less
//   gpt_baby      6      6     384     256   256        T
//   gpt_nano      4      4     128      64   256        T
//
// Parameters have the names and shapes of Hugging Face's GPT2LMHeadModel; a linear layer within a block
// stores its weight I x O, as their Conv1D does. The head is the embedding of words. Weights start from
// N(0, 0.02²), those that write to the residual stream from N(0, 0.02² / (2 · layers)), biases at 0.
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_gpt2 = {.dropout = 0.1, .sequence = 1024, .vocabulary = 50257};
constexpr UsualOptions usual_gpt_baby = {.dropout = 0.2, .sequence = 256, .vocabulary = 256};
constexpr UsualOptions usual_gpt_nano = {.dropout = 0, .sequence = 64, .vocabulary = 256};

// A GptTable says how large a network is.
struct GptTable {
  int layers = 12, heads = 12;
  int64_t width = 768;
  int64_t positions = 0;  // rows of the table of positions; 0: T
  bool tied = true;       // the head is the embedding of words
};
Graph gpt_network(std::string name, const GptTable&, const ModelOptions& completed);

Graph gpt2(const ModelOptions&);
Graph gpt_baby(const ModelOptions&);
Graph gpt_nano(const ModelOptions&);

}  // namespace antichain
