// Several topological orders of one network. Where the antichains are too many to search, a plan can still be
// the best contiguous cut of an order; which order decides how good that is.
#pragma once

#include <vector>

#include "partition/search/cut_graph.h"

namespace antichain {

// The graph order first; then breadth first, depth first, and by how much work depends on a node or is in it,
// most and least first. No order twice.
std::vector<std::vector<int>> topological_orders(const CutGraph&);

}  // namespace antichain
