// Freezing keeps parameters as they are: they get no gradient and no update, nor any decay, and the optimiser
// keeps nothing beside them. Where nothing below a node is trained, no backward goes there. As in PyTorch
// (requires_grad), a frozen batch norm still takes the statistics of its batches, and updates the running
// ones: only its parameters are frozen.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/graph.h"

namespace antichain {

// Returns the graph with the parameters of these full names frozen, besides those that are already. The graph
// is not yet lowered.
Graph freeze(const Graph&, const std::set<std::string>& full_names);

// Returns the graph with the parameters frozen whose names in files of weights match one of the patterns
// (framework/name_pattern.h). Throws Error (usage) for a pattern that no parameter matches.
Graph freeze_matching(const Graph&, const std::vector<std::string>& patterns);

// Throws Error (usage) where all parameters of a network that has some are frozen.
void check_trains(const Graph&);

}  // namespace antichain
