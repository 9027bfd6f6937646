// A CutGraph is the network as a planner sees it: input nodes are left out, and prices are integers.
//
// Inputs belong to no stage (every stage that uses one loads it), so they are neither cut nor priced. Times
// are rounded once, here. From then on sums and comparisons are exact, and "equal" means equal on every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/profile/profile.h"

namespace antichain {

struct CutGraph {
  // An Output has the tensors of a node that the same nodes use.
  struct Output {
    int64_t bytes = 0;
    int tensors = 1;
    std::vector<int> consumers;  // ascending
  };
  std::vector<std::vector<int>> nodes;  // profile indices of each node: one, unless nodes were merged
  std::vector<std::vector<int>> inputs, consumers;  // indices of this graph, ascending, no repeats
  std::vector<std::vector<Output>> outputs;  // none where nobody uses any; several where nodes were merged
  std::vector<int64_t> work_ns;              // forward + backward of one micro-batch
  std::vector<int64_t> param_bytes;          // one copy of the weights
  std::vector<int64_t> held_bytes,
      kept_bytes;                   // of memory: always, and per micro-batch in flight (stage_cost.h)
  std::vector<int64_t> slot_bytes;  // of what is held: what replicas may share out

  int size() const { return int(nodes.size()); }
};

// Throws Error naming the node when its time is beyond what planning in nanoseconds can add up (a hundred
// days in all), or its bytes are beyond nine petabytes in a step.
CutGraph cut_graph(const Profile&);

// Returns the same graph with its nodes in another topological order: order[i] becomes node i.
CutGraph reordered(const CutGraph&, const std::vector<int>& order);

}  // namespace antichain
