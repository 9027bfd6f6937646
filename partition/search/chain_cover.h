// Chains cover the network, so that a down-set is a handful of numbers: how far it has come along each chain.
//
//      a ─ b ─ c ─ f          chain 0: a b c f
//       \─ d ─ e ─/           chain 1: d e          the down-set {a, b, d} is (2, 1)
//
// A chain is a set of nodes of which any two are ordered by a path, so a down-set that holds one of its nodes
// holds all earlier ones. Containment is then ≤ in every component, and a network 20,000 nodes deep needs one
// number.
#pragma once

#include <optional>
#include <vector>

#include "partition/search/cut_graph.h"

namespace antichain {

struct ChainCover {
  std::vector<std::vector<int>> chains;  // nodes of the CutGraph, ascending
  std::vector<int> chain_of, position;   // per node: its chain, its place in it

  int size() const { return int(chains.size()); }
  void append(int chain, int node);  // nodes come in graph order
};

// Covers the graph by first fit in graph order: a node continues the first chain whose last node is one of
// its ancestors. Returns nothing when more than `max_chains` are needed; a network that wide has more
// down-sets than anybody can list.
std::optional<ChainCover> chain_cover(const CutGraph&, int max_chains = 512);

// Returns one chain, the graph order itself, whose down-sets are the prefixes of the graph order.
ChainCover graph_order_cover(const CutGraph&);

}  // namespace antichain
