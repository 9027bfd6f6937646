// Adds a row of a parameter to each position of a sample: learned positions, as in Vaswani et al., "Attention
// Is All You Need", NeurIPS 2017, section 3.5.
//
//   x  N x T x C     weight  rows x C, at least T rows     y = x + weight[0:T]
//
// It is a formula (layers/elementwise.h) whose parameter is a part of the weight (framework/computed.h).
#pragma once

#include "framework/graph.h"

namespace antichain {

struct PositionsOptions {
  int64_t rows = 0;  // 0: T
  Initialiser weight_init = Initialiser::normal(1);
};

// Throws Error where x has other axes, or more positions than there are rows.
NodeId add_positions(Graph&, std::string name, NodeId x, PositionsOptions = {});
// Adds the rows that an input says instead: places  N x T, int32, from 0. They are an embedding, and `sum` is
// the node that adds it. Places are less than T, so T is refused as above.
NodeId add_positions(Graph&, std::string name, NodeId x, PositionsOptions, NodeId places, std::string sum);

}  // namespace antichain
