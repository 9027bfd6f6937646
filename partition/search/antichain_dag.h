// The antichain DAG holds all the places where a network can be cut, and which lies beyond which.
//
// Write u < v when a path leads from u to v. An antichain is a set of nodes no two of which are ordered. It
// stands for the down-set of everything at or before it. There is one state per antichain, the empty one
// included, and an edge where adding one node leads from one down-set to the next. States are numbered in
// topological order (by size of the down-set, then in order of discovery), which is the state sequence. A
// stage is the difference of two nested down-sets.
//
// It was introduced by D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training",
// SOSP 2019.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "partition/search/chain_cover.h"
#include "partition/search/cut_graph.h"

namespace antichain {

class AntichainDag {
 public:
  // Returns nothing when there are more than `max_states` down-sets.
  static std::optional<AntichainDag> build(CutGraph, ChainCover, int64_t max_states);
  // Builds only the down-sets that are prefixes of the graph order: state i is the first i nodes.
  static AntichainDag prefixes(CutGraph);

  int states() const { return int(work_ns_.size()); }
  int empty() const { return 0; }
  int full() const { return states() - 1; }
  const CutGraph& graph() const { return graph_; }

  std::span<const int> next(int state) const {  // one node more
    return {next_.data() + next_begin_[state], next_.data() + next_begin_[state + 1]};
  }
  int before(int state) const { return before_[state]; }  // the first state of which this is a next one
  int added(int state) const { return added_[state]; }    // the node that is not in it, of graph()
  bool inside(int smaller, int larger) const;  // containment of down-sets; true for a state in itself
  int64_t work_ns(int state) const { return work_ns_[state]; }                // of the down-set
  int64_t crossing_bytes(int state) const { return crossing_bytes_[state]; }  // of the tensors that cross
  int crossing_tensors(int state) const { return crossing_tensors_[state]; }  // how many
  // Returns, per state, the sum over its down-set of a price per node of graph().
  std::vector<int64_t> sums(const std::vector<int64_t>& price) const;

  // Returns indices into the profile, ascending.
  std::vector<int> down_set(int state) const;
  std::vector<int> between(int smaller, int larger) const;  // what a stage between two states has
  std::vector<int> antichain(int state) const;              // its maximal nodes

 private:
  friend class AntichainDagBuilder;
  bool holds(int state, int node) const;
  template <class Keep>
  std::vector<int> select(int state, Keep keep) const;

  CutGraph graph_;
  ChainCover cover_;
  std::vector<int> reach_;  // states x chains: how many nodes of each chain the down-set holds
  std::vector<int64_t> work_ns_, crossing_bytes_;
  std::vector<int> crossing_tensors_;
  std::vector<int> before_, added_;  // one down-set with a node less, and that node
  std::vector<int64_t> next_begin_;  // states + 1, into next_
  std::vector<int> next_;
};

}  // namespace antichain
