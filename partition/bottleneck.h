// The smallest bottleneck: the fastest that the slowest stage can be, over all ways to cut into S stages.
//
// A threshold test, and a binary search over whole nanoseconds. For a threshold T one pass over the antichain DAG
// decides whether S non-empty stages, none above T, reach from the empty down-set to the full one. A boundary D is
// allowed when its transfer is at most T. With w(D) the work of the down-set D,
//
//   latest_j(D) = max of w(E) over boundaries E strictly inside D that exactly j stages reach
//   D is reached by exactly j + 1 stages  when  D is allowed and w(D) − latest_j(D) ≤ T
//
// Whether some E serves depends on w(E) alone, so the largest decides; and a down-set strictly inside D lies inside
// one of those with a node less, so latest_j is a running maximum along the edges: no pair of states is compared.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/antichain_dag.h"

namespace antichain {

class BottleneckSearch {
 public:
  // Whether transfers count: objective "compute-or-transfer".
  BottleneckSearch(const AntichainDag&, int stages, bool transfers_count);

  // The smallest attainable threshold of [low, high], of which `high` must be attainable. Leaves the search as
  // attainable() of that threshold would.
  int64_t minimum(int64_t low, int64_t high);
  bool attainable(int64_t threshold_ns);

  // About the last threshold tested. Whether stages 0 … j − 1 can end at this state, and the others might still
  // have room for the rest.
  bool boundary(int state, int j) const;
  // One sequence of S + 1 states from empty to full, if attainable: from the back, always the boundary with the
  // most work, of these the first in the state sequence.
  std::vector<int> any_cuts() const;

  const AntichainDag& dag() const { return dag_; }
  int stages() const { return stages_; }
  int64_t threshold_ns() const { return threshold_; }
  bool allowed(int state) const { return !transfers_count_ || dag_.transfer_ns(state) <= threshold_; }

 private:
  int64_t latest(int state, int j) const { return latest_[size_t(state) * stages_ + j]; }
  int first_useful(int state) const;
  int last_useful(int state) const;
  void pass_on(int state, int first, int last);

  const AntichainDag& dag_;
  int stages_;
  bool transfers_count_;
  int64_t total_, threshold_ = 0;
  std::vector<int64_t> latest_;   // states x stages; −1: no such boundary
  std::vector<int64_t> passing_;  // scratch of pass_on
};

}  // namespace antichain
