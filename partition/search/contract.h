// A contraction is a smaller network, of which some nodes are several. Those that have to be in one stage are
// one node. Nodes that are best kept together become one, too, where a network has more antichains than can
// be searched.
//
//   chains      a ─ b ─ c        c alone uses b, and b alone a: one node
//   branches      ┌ a ┐
//               u ┤   ├ w        a and b have one input u and one consumer w: one node with two outputs
//                 └ b ┘
#pragma once

#include "partition/plan/plan_options.h"
#include "partition/search/cut_graph.h"

namespace antichain {

// Returns the graph with its nodes mapped to groups, which are numbered in a topological order of theirs.
CutGraph grouped(const CutGraph&, const std::vector<int>& group, int groups);

// Returns the network as it may be cut. Each set of nodes that one stage has, by the profile or the options,
// is one node, with all nodes that lie on a cycle of sets. No set of the options can be cut off before the
// one that it follows in their list. A node of several holds a weight that they share once.
CutGraph graph_to_cut(const Profile&, const PlanOptions&);

enum class Contraction { chains, chains_and_branches };

// Repeats until nothing changes. No merged node has more work than `most_work_ns`, so that the slowest stage
// loses little.
CutGraph contract(const CutGraph&, Contraction, int64_t most_work_ns);

}  // namespace antichain
