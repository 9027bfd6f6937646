// The antichain DAG is tested on shapes whose down-sets can be counted by hand, and by its definitions on
// random networks.
#include "partition/search/antichain_dag.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

constexpr int64_t no_limit = 1 << 30;
constexpr int seeds = 100;

AntichainDag lattice(const Profile& profile) {
  CutGraph graph = cut_graph(profile);
  ChainCover cover = *chain_cover(graph);
  return *AntichainDag::build(graph, cover, no_limit);
}

// Returns all down-sets by trying every set of nodes, which is the definition itself.
std::set<std::vector<int>> down_sets_by_definition(const Profile& profile) {
  std::set<std::vector<int>> all;
  int nodes = int(profile.nodes.size());
  for (uint32_t set = 0; set < (1u << nodes); ++set) {
    bool closed = true;
    std::vector<int> members;
    for (int n = 0; n < nodes; ++n) {
      if (!(set >> n & 1)) continue;
      members.push_back(n);
      if (profile.nodes[n].role == Role::input) closed = false;
      for (int u : profile.nodes[n].inputs)
        if (profile.nodes[u].role != Role::input && !(set >> u & 1)) closed = false;
    }
    if (closed) all.insert(members);
  }
  return all;
}

TEST(AntichainDag, CountsTheDownSetsOfKnownShapes) {
  EXPECT_EQ(lattice(chain(1)).states(), 2);
  EXPECT_EQ(lattice(chain(40)).states(), 41);
  EXPECT_EQ(lattice(parallel_chains(3, 4)).states(), 5 * 5 * 5);
  EXPECT_EQ(lattice(parallel_chains(5, 3)).states(), 4 * 4 * 4 * 4 * 4);
  EXPECT_EQ(lattice(parallel_chains(12, 1)).states(), 4096);
  EXPECT_EQ(lattice(residual_blocks(10)).states(),
            32);  // the skip edge orders everything: a chain of 31 nodes
}

TEST(AntichainDag, StopsBeyondMaxStates) {
  CutGraph graph = cut_graph(parallel_chains(3, 4));
  ChainCover cover = *chain_cover(graph);
  EXPECT_TRUE(AntichainDag::build(graph, cover, 125));
  EXPECT_FALSE(AntichainDag::build(graph, cover, 124));
  EXPECT_FALSE(AntichainDag::build(graph, cover, 1));
}

TEST(AntichainDag, PrefixesAreTheFirstNodesOfTheGraphOrder) {
  Profile profile = parallel_chains(2, 3);
  AntichainDag dag = AntichainDag::prefixes(cut_graph(profile));
  ASSERT_EQ(dag.states(), 7);
  for (int state = 0; state < 7; ++state) {
    EXPECT_EQ(int(dag.down_set(state).size()), state);
    if (state > 0) {
      EXPECT_EQ(dag.down_set(state).back(), state - 1);
    }
  }
}

TEST(AntichainDag, ADiamondIsWhatTheDefinitionsSay) {
  Profile profile;
  int image = add_input(profile);
  int a = add(profile, {image}, 1000, 2000, 10), b = add(profile, {a}, 1000, 2000, 20);
  int c = add(profile, {a}, 1000, 2000, 40);
  int d = add(profile, {b, c, a}, 1000, 2000, 80);
  AntichainDag dag = lattice(profile);
  ASSERT_EQ(dag.states(), 6);
  EXPECT_EQ(dag.antichain(2), std::vector<int>({b}));
  EXPECT_EQ(dag.crossing_bytes(2), 30);  // a still feeds c and d
  EXPECT_EQ(dag.antichain(4), std::vector<int>({b, c}));
  EXPECT_EQ(dag.crossing_bytes(4), 70);
  EXPECT_EQ(dag.crossing_bytes(dag.full()), 0);
  EXPECT_EQ(dag.antichain(dag.full()), std::vector<int>({d}));
}

TEST(AntichainDagOfRandom, HasExactlyTheDownSetsOneStateEach) {
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    Profile profile = random_network(seed, 10);
    if (profile.nodes.size() > 16) continue;  // too many subsets to try them all
    AntichainDag dag = lattice(profile);
    std::set<std::vector<int>> found, antichains;
    for (int state = 0; state < dag.states(); ++state) {
      found.insert(dag.down_set(state));
      antichains.insert(dag.antichain(state));
    }
    EXPECT_EQ(found, down_sets_by_definition(profile));
    EXPECT_EQ(int(found.size()), dag.states());
    EXPECT_EQ(antichains.size(), found.size());
    EXPECT_TRUE(dag.down_set(dag.empty()).empty());
  }
}

TEST(AntichainDagOfRandom, ItsEdgesAddOneNodeAndNoneIsMissing) {
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    AntichainDag dag = lattice(random_network(seed, 8));
    std::map<std::vector<int>, int> number;
    for (int state = 0; state < dag.states(); ++state) number[dag.down_set(state)] = state;
    for (const auto& [set, state] : number) {
      std::set<int> expected;
      for (const std::vector<int>& members : dag.graph().nodes) {
        const int node = members[0];
        std::vector<int> larger = set;
        if (std::find(set.begin(), set.end(), node) != set.end()) continue;
        larger.insert(std::upper_bound(larger.begin(), larger.end(), node), node);
        if (number.count(larger)) expected.insert(number[larger]);
      }
      std::span<const int> next = dag.next(state);
      EXPECT_EQ(std::set<int>(next.begin(), next.end()), expected);
      EXPECT_EQ(next.size(), expected.size());
      for (int after : next) EXPECT_GT(after, state);  // the state sequence is topological
    }
  }
}

TEST(AntichainDagOfRandom, ContainmentIsThatOfTheDownSets) {
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    AntichainDag dag = lattice(random_network(seed, 7));
    for (int a = 0; a < dag.states(); ++a)
      for (int b = 0; b < dag.states(); ++b) {
        std::vector<int> small = dag.down_set(a), large = dag.down_set(b);
        EXPECT_EQ(dag.inside(a, b), std::includes(large.begin(), large.end(), small.begin(), small.end()));
      }
  }
}

TEST(AntichainDagOfRandom, AugmentedAntichainIsAntichainAndWhatCrosses) {
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    Profile profile = random_network(seed, 10);
    AntichainDag dag = lattice(profile);
    std::vector<std::vector<int>> consumers = profile.consumers();
    for (int state = 0; state < dag.states(); ++state) {
      std::vector<int> set = dag.down_set(state);
      auto holds = [&](int n) { return std::binary_search(set.begin(), set.end(), n); };
      std::vector<int> maximal;
      int64_t bytes = 0, work = 0;
      int tensors = 0;
      for (int n : set) {
        const NodeCost& cost = profile.nodes[n].cost;
        work += std::llround(cost.compute_s() * 1e9);
        if (std::none_of(consumers[n].begin(), consumers[n].end(), holds)) maximal.push_back(n);
        if (std::all_of(consumers[n].begin(), consumers[n].end(), holds)) continue;
        bytes += cost.output_bytes;
        ++tensors;
      }
      EXPECT_EQ(dag.antichain(state), maximal);
      EXPECT_EQ(dag.crossing_bytes(state), bytes);
      EXPECT_EQ(dag.crossing_tensors(state), tensors);
      EXPECT_EQ(dag.work_ns(state), work);
      EXPECT_EQ(dag.sums(dag.graph().work_ns)[state], work);
    }
  }
}

}  // namespace
}  // namespace antichain
