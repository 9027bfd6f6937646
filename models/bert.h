// This is BERT (Devlin, Chang, Lee & Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding", NAACL 2019) with its masked-language loss: an encoder whose blocks normalise after
// attention and after the two-layer network.
//
//   12 layers of 12 heads, 768 wide, T = 128 of 30,522 words; 512 positions, so that T may be up to that
//
// Two more inputs than other networks of tokens have: token_types (int32, N x T, 0 or 1: which of two texts a
// token is of), and always documents, in which −1 is padding. Labels are the words that were masked; all
// others are −100. Word 0 is padding, whose row learns as a column of the last layer only.
//
// Parameters have the names and shapes of Hugging Face's BertForMaskedLM: the last linear layer has the
// embedding of words as its weight, and a bias that is called cls.predictions.bias. Weights start from
// N(0, 0.02²), biases at 0.
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_bert_base = {.dropout = 0.1, .sequence = 128, .vocabulary = 30522};

// A BertTable says how large a network is.
struct BertTable {
  int layers = 12, heads = 12;
  int64_t width = 768, hidden = 3072, positions = 512;
};
Graph bert_network(std::string name, const BertTable&, const ModelOptions& completed);

Graph bert_base(const ModelOptions&);

}  // namespace antichain
