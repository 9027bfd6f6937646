#include "partition/search/chain_cover.h"

#include <algorithm>

namespace antichain {
namespace {

// A Clock says how many nodes of each chain are ancestors of a node (or the node itself). It is a vector
// clock, as in F. Mattern, "Virtual Time and Global States of Distributed Systems", Parallel and Distributed
// Algorithms, 1989. Clocks end at the last chain that existed when their node was placed.
using Clock = std::vector<int>;

Clock join(const CutGraph& graph, const std::vector<Clock>& clocks, int node) {
  Clock all;
  for (int u : graph.inputs[node]) {
    all.resize(std::max(all.size(), clocks[u].size()), 0);
    for (size_t c = 0; c < clocks[u].size(); ++c) all[c] = std::max(all[c], clocks[u][c]);
  }
  return all;
}

// The last node of a chain is an ancestor exactly when all of the chain is.
int first_fit(const ChainCover& cover, const Clock& ancestors) {
  for (size_t c = 0; c < ancestors.size(); ++c)
    if (ancestors[c] == int(cover.chains[c].size())) return int(c);
  return cover.size();
}

}  // namespace

void ChainCover::append(int chain, int node) {
  if (chain == size()) chains.emplace_back();
  chain_of.push_back(chain);
  position.push_back(int(chains[chain].size()));
  chains[chain].push_back(node);
}

std::optional<ChainCover> chain_cover(const CutGraph& graph, int max_chains) {
  ChainCover cover;
  std::vector<Clock> clocks(graph.size());
  for (int v = 0; v < graph.size(); ++v) {
    clocks[v] = join(graph, clocks, v);
    int chain = first_fit(cover, clocks[v]);
    if (chain == max_chains) return std::nullopt;
    cover.append(chain, v);
    clocks[v].resize(std::max(clocks[v].size(), size_t(chain) + 1), 0);
    clocks[v][chain] = cover.position[v] + 1;
  }
  return cover;
}

ChainCover graph_order_cover(const CutGraph& graph) {
  ChainCover cover;
  for (int v = 0; v < graph.size(); ++v) cover.append(0, v);
  return cover;
}

}  // namespace antichain
