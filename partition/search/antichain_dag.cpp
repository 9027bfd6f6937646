#include "partition/search/antichain_dag.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace antichain {

// A LevelIndex finds states of one level (down-sets of one size) again. Hashes only speed up the look-up:
// states are numbered in order of discovery, so no result depends on them.
class LevelIndex {
 public:
  explicit LevelIndex(const std::vector<uint64_t>& hashes) : hashes_(hashes) {}

  void clear(int expected) {
    size_t slots = 16;
    while (slots < 4 * size_t(expected)) slots *= 2;
    slots_.assign(slots, -1);
    used_ = 0;
  }

  template <class Same>
  int find(uint64_t hash, Same same) const {
    for (size_t i = hash & (slots_.size() - 1); slots_[i] >= 0; i = (i + 1) & (slots_.size() - 1))
      if (hashes_[slots_[i]] == hash && same(slots_[i])) return slots_[i];
    return -1;
  }

  void add(int state) {
    if (2 * ++used_ > slots_.size()) grow();
    place(state);
  }

 private:
  void place(int state) {
    size_t i = hashes_[state] & (slots_.size() - 1);
    while (slots_[i] >= 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = state;
  }
  void grow() {
    std::vector<int> old(2 * slots_.size(), -1);
    old.swap(slots_);
    for (int state : old)
      if (state >= 0) place(state);
  }

  const std::vector<uint64_t>& hashes_;
  std::vector<int> slots_;
  size_t used_ = 0;
};

namespace {

// Every node has a 64-bit key by S. Vigna's SplitMix64. A down-set's hash is the exclusive or of its nodes'
// keys.
uint64_t node_key(int node) {
  uint64_t z = (uint64_t(node) + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

// The builder goes breadth first, level by level: every down-set of n + 1 nodes is one of n nodes and one
// node more.
class AntichainDagBuilder {
 public:
  AntichainDagBuilder(CutGraph graph, ChainCover cover) : index_(hashes_) {
    dag_.graph_ = std::move(graph);
    dag_.cover_ = std::move(cover);
  }

  std::optional<AntichainDag> run(int64_t max_states) {
    max_states = std::min<int64_t>(max_states, std::numeric_limits<int>::max());
    dag_.reach_.assign(dag_.cover_.size(), 0);
    push(0, 0, 0, 0);
    dag_.before_.push_back(0);
    dag_.added_.push_back(-1);
    for (int begin = 0, end = 1; begin < end; begin = end, end = dag_.states()) {
      index_.clear(end - begin);
      for (int state = begin; state < end; ++state) {
        expand(state);
        if (dag_.states() > max_states) return std::nullopt;
      }
    }
    dag_.next_begin_.push_back(int64_t(dag_.next_.size()));
    return std::move(dag_);
  }

 private:
  void push(uint64_t hash, int64_t work_ns, int64_t crossing_bytes, int crossing_tensors) {
    hashes_.push_back(hash);
    dag_.work_ns_.push_back(work_ns);
    dag_.crossing_bytes_.push_back(crossing_bytes);
    dag_.crossing_tensors_.push_back(crossing_tensors);
  }

  void expand(int state) {
    dag_.next_begin_.push_back(int64_t(dag_.next_.size()));
    for (int c = 0; c < dag_.cover_.size(); ++c) {
      const std::vector<int>& chain = dag_.cover_.chains[c];
      int reached = dag_.reach_[size_t(state) * dag_.cover_.size() + c];
      if (reached == int(chain.size())) continue;
      const std::vector<int>& inputs = dag_.graph_.inputs[chain[reached]];
      if (std::all_of(inputs.begin(), inputs.end(), [&](int u) { return dag_.holds(state, u); }))
        dag_.next_.push_back(with(state, c, chain[reached]));
    }
  }

  int with(int state, int chain, int node) {
    uint64_t hash = hashes_[state] ^ node_key(node);
    int known = index_.find(hash, [&](int other) { return is_one_more(other, state, chain); });
    if (known >= 0) return known;
    create(state, chain, node, hash);
    index_.add(dag_.full());
    return dag_.full();
  }

  bool is_one_more(int other, int state, int chain) const {
    const int* a = &dag_.reach_[size_t(other) * dag_.cover_.size()];
    const int* b = &dag_.reach_[size_t(state) * dag_.cover_.size()];
    for (int c = 0; c < dag_.cover_.size(); ++c)
      if (a[c] != b[c] + (c == chain)) return false;
    return true;
  }

  // The new node's outputs begin to cross; those of an input end when the node was their last consumer.
  void create(int state, int chain, int node, uint64_t hash) {
    const CutGraph& graph = dag_.graph_;
    size_t width = dag_.cover_.size(), from = size_t(state) * width;
    dag_.reach_.resize(dag_.reach_.size() + width);
    std::copy_n(dag_.reach_.begin() + from, width, dag_.reach_.end() - width);
    ++dag_.reach_[dag_.reach_.size() - width + chain];
    push(hash, dag_.work_ns_[state] + graph.work_ns[node], dag_.crossing_bytes_[state],
         dag_.crossing_tensors_[state]);
    dag_.before_.push_back(state);
    dag_.added_.push_back(node);

    int created = dag_.full();
    for (const CutGraph::Output& output : graph.outputs[node]) {
      dag_.crossing_bytes_[created] += output.bytes;
      dag_.crossing_tensors_[created] += output.tensors;
    }
    for (int u : graph.inputs[node])
      for (const auto& [bytes, tensors, consumers] : graph.outputs[u]) {
        // It looks from the back, because the last consumer is the likeliest to be missing.
        if (!std::all_of(consumers.rbegin(), consumers.rend(),
                         [&](int v) { return dag_.holds(created, v); }) ||
            !std::ranges::binary_search(consumers, node))
          continue;
        dag_.crossing_bytes_[created] -= bytes;
        dag_.crossing_tensors_[created] -= tensors;
      }
  }

  AntichainDag dag_;
  std::vector<uint64_t> hashes_;
  LevelIndex index_;
};

std::optional<AntichainDag> AntichainDag::build(CutGraph graph, ChainCover cover, int64_t max_states) {
  return AntichainDagBuilder(std::move(graph), std::move(cover)).run(max_states);
}

AntichainDag AntichainDag::prefixes(CutGraph graph) {
  ChainCover cover = graph_order_cover(graph);
  return *build(std::move(graph), std::move(cover), std::numeric_limits<int64_t>::max());
}

bool AntichainDag::inside(int smaller, int larger) const {
  const int* a = &reach_[size_t(smaller) * cover_.size()];
  const int* b = &reach_[size_t(larger) * cover_.size()];
  for (int c = 0; c < cover_.size(); ++c)
    if (a[c] > b[c]) return false;
  return true;
}

bool AntichainDag::holds(int state, int node) const {
  return cover_.position[node] < reach_[size_t(state) * cover_.size() + cover_.chain_of[node]];
}

template <class Keep>
std::vector<int> AntichainDag::select(int state, Keep keep) const {
  std::vector<int> chosen;
  for (int v = 0; v < graph_.size(); ++v)
    if (holds(state, v) && keep(graph_.consumers[v]))
      chosen.insert(chosen.end(), graph_.nodes[v].begin(), graph_.nodes[v].end());
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int64_t> AntichainDag::sums(const std::vector<int64_t>& price) const {
  std::vector<int64_t> sum(size_t(states()), 0);
  for (int state = 1; state < states(); ++state) sum[state] = sum[before_[state]] + price[added_[state]];
  return sum;
}

std::vector<int> AntichainDag::down_set(int state) const {
  return select(state, [](const std::vector<int>&) { return true; });
}

std::vector<int> AntichainDag::between(int smaller, int larger) const {
  const std::vector<int> before = down_set(smaller), after = down_set(larger);
  std::vector<int> nodes;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(nodes));
  return nodes;
}

std::vector<int> AntichainDag::antichain(int state) const {
  return select(state, [&](const std::vector<int>& consumers) {
    return std::none_of(consumers.begin(), consumers.end(), [&](int v) { return holds(state, v); });
  });
}

}  // namespace antichain
