// A network of tokens whose attention is causal need not read a text again to read on: what it needs of the
// earlier tokens is their keys and values.
//
//   read before                tokens read now
//   input "h.0.attn.k.earlier" linear layers, norms, … of `count` tokens
//              └──── concat ────┘  keys (or values) of all T positions
//                      └── attention of `count` queries to all T
//
// Earlier tokens stand right before those that are read now. Where there are fewer than T − count, their
// places are the last ones, and "documents" has −1 at the others, to which nobody attends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/graph.h"

namespace antichain {

// Kept says where the keys or the values of one attention are.
struct Kept {
  std::string input;  // N x (T − count) x width x 1, float32: of earlier tokens
  std::string node;   // N x T x width x 1: the same, and behind them those of the tokens read now
};

struct ReadingOn {
  Graph graph;
  std::vector<Kept> kept;
};

// Returns the network that reads `count` tokens, less than T, of a network that reads T of them. It has the
// same parameters, and its inputs are tokens, labels and positions (N x count), documents (N x T), and those
// of `kept`. Returns nothing where the network does more to tokens than operators whose results at a position
// depend on that position alone, rotary positions, and causal attention. Learned positions have to be the
// rows of an embedding that the input "positions" names.
std::optional<ReadingOn> reading_on(const Graph&, int64_t count);

}  // namespace antichain
