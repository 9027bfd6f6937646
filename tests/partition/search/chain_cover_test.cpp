// A chain cover holds every node once, and any two nodes of a chain are ordered by a path.
#include "partition/search/chain_cover.h"

#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

std::vector<std::vector<bool>> paths(const CutGraph& graph) {
  std::vector<std::vector<bool>> before(graph.size(), std::vector<bool>(graph.size(), false));
  for (int v = 0; v < graph.size(); ++v)
    for (int u : graph.inputs[v]) {
      before[u][v] = true;
      for (int t = 0; t < u; ++t)
        if (before[t][u]) before[t][v] = true;
    }
  return before;
}

TEST(ChainCover, NeedsAsManyChainsAsThereAreParallelBranches) {
  EXPECT_EQ(chain_cover(cut_graph(chain(100)))->size(), 1);
  EXPECT_EQ(chain_cover(cut_graph(residual_blocks(50)))->size(), 1);
  EXPECT_EQ(chain_cover(cut_graph(parallel_chains(4, 9)))->size(), 4);
}

TEST(ChainCover, GivesUpOnNetworksTooWideToEnumerate) {
  EXPECT_TRUE(chain_cover(cut_graph(parallel_chains(30, 1)), 30));
  EXPECT_FALSE(chain_cover(cut_graph(parallel_chains(31, 1)), 30));
}

TEST(ChainCover, HoldsEveryNodeOnceInOrderedChains) {
  for (int seed = 0; seed < 200; ++seed) {
    CutGraph graph = cut_graph(random_network(seed, 30));
    ChainCover cover = *chain_cover(graph);
    std::vector<std::vector<bool>> before = paths(graph);
    std::vector<int> seen(graph.size(), 0);
    for (int c = 0; c < cover.size(); ++c)
      for (int i = 0; i < int(cover.chains[c].size()); ++i) {
        int node = cover.chains[c][i];
        ++seen[node];
        EXPECT_EQ(cover.chain_of[node], c);
        EXPECT_EQ(cover.position[node], i);
        if (i > 0) {
          EXPECT_TRUE(before[cover.chains[c][i - 1]][node]) << "seed " << seed;
        }
      }
    EXPECT_EQ(seen, std::vector<int>(graph.size(), 1)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace antichain
