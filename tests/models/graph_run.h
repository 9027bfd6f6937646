// Runs a whole graph forward and backward on one micro-batch, on any backend: the simplest thing that could be
// called training, to compare engines by.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/graph.h"

namespace antichain {

struct GraphResults {
  std::vector<double> losses;                            // per sample
  std::map<std::string, std::vector<double>> gradients;  // by full parameter name, plain layout
};

// `graph` is as the model made it; it is lowered here. Parameters start as training would start them.
GraphResults run_graph(const Graph& graph, const Backend&, uint64_t seed);

}  // namespace antichain
