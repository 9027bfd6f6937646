// These networks use weights several times.
#pragma once

#include "models/options.h"

namespace antichain::test {

// Both halves of an image go through the same two layers, and how far apart the results are decides:
//
//   images ─┬─ left ── left.conv ── left.fc ──┬─ distance ─ fc ─ loss
//           └─ right ─ right.conv ─ right.fc ─┘
Graph siamese(const ModelOptions&);

// A gated recurrent unit (Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for
// Statistical Machine Translation", EMNLP 2014) reads the first rows of an image: step t has nodes "t.input"
// and "t.state", whose weights are those of the steps before.
Graph unrolled(const ModelOptions&);

// Convolutions in blocked layouts, and linear layers, of which each uses the weights of the one before:
//
//   images ─ stem ─┬─ 0.conv ─ add ─┬─ 1.conv ─ add ─ … ─ narrow ─ 0.fc ─ 1.fc ─ fc ─ loss
//                  └───────────┘    └───────────┘
Graph repeated(const ModelOptions&);

// The head of a small language model has the weights of its embedding; it reads "tokens" and has a label for
// each:
//
//   tokens ─ wte ─ wpe ─┬─ norm ─ fc ─ gate ─ proj ─ add ─ head ─ loss
//                       └──────────────────────────────┘
Graph tied(const ModelOptions&);

// Two blocks of GPT-2 with dropout, and four of Llama with grouped queries, with the head tied to the
// embedding. They read samples of 8 of 10 tokens.
Graph small_gpt(const ModelOptions&);
Graph small_llama(const ModelOptions&);

}  // namespace antichain::test
