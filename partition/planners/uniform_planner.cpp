// This is the simplest planner: all stages have equally many nodes, in graph order. The exact planner is
// compared with it.
#include "partition/planners/sequence.h"

#include <chrono>

namespace antichain {

Plan plan_uniform(const Profile& profile, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const CutGraph graph = sequence_graph(profile, options, Method::uniform);
  const int parts = sequence_parts(options, graph);
  std::vector<int> ends;
  for (int s = 1; s <= parts; ++s) ends.push_back(int(int64_t(graph.size()) * s / parts));
  return sequence_plan(profile, options, ends, Method::uniform, start);
}

}  // namespace antichain
