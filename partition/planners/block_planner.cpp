// This planner makes a block partition of the sequence of node times: stages whose times differ by no more
// than the slowest node. It balances well where nodes are small, but never asks for the smallest slowest
// stage. Devices and links play no part.
#include "partition/planners/block_partition.h"

#include <chrono>

#include "partition/planners/sequence.h"

namespace antichain {

Plan plan_block(const Profile& profile, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const CutGraph graph = sequence_graph(profile, options, Method::block);
  const std::vector<int> ends = block_partition(graph.work_ns, sequence_parts(options, graph));
  return sequence_plan(profile, options, ends, Method::block, start);
}

}  // namespace antichain
