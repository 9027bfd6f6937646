// Where the antichains are too many to search, a plan can still be the best contiguous cut of a topological
// order. Which order it is decides how good that is, so several are tried.
#pragma once

#include <vector>

#include "partition/search/cut_graph.h"

namespace antichain {

// Returns the graph order, then breadth first and depth first, and then orders by how much work depends on a
// node or is in it, with the most or the least first. No order comes twice.
std::vector<std::vector<int>> topological_orders(const CutGraph&);

}  // namespace antichain
