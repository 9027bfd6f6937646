// A contraction is a smaller network: nodes that are best kept together become one. It serves networks with
// more antichains than can be searched.
//
//   chains      a ─ b ─ c        c alone uses b, and b alone a: one node
//   branches      ┌ a ┐
//               u ┤   ├ w        a and b have one input u and one consumer w: one node with two outputs
//                 └ b ┘
#pragma once

#include "partition/search/cut_graph.h"

namespace antichain {

// Returns the graph with its nodes mapped to groups, which are numbered in a topological order of theirs.
CutGraph grouped(const CutGraph&, const std::vector<int>& group, int groups);

// Returns the graph in which each of these sets of profile nodes is one node, with all nodes that lie on a
// cycle of sets.
CutGraph sitting_together(const CutGraph&, const std::vector<std::vector<int>>& sets);

enum class Contraction { chains, chains_and_branches };

// Returns the graph in which each of these sets of profile nodes is one node, and no set can be cut off
// before the one that it follows in the list. No path between two nodes of a set may lead through a node
// outside it. In the graph's order no outside node may come between them, except nodes that nobody reads.
CutGraph merge(const CutGraph&, const std::vector<std::vector<int>>& together);

// Repeats until nothing changes. No merged node has more work than `most_work_ns`, so that the slowest stage
// loses little.
CutGraph contract(const CutGraph&, Contraction, int64_t most_work_ns);

}  // namespace antichain
