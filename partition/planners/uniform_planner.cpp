// The simplest planner: equal node counts, in graph order. What the exact one is compared with.
#include "partition/planners/sequence.h"

namespace antichain {

Plan plan_uniform(const Profile& profile, const PlanOptions& options) {
  const auto start = Clock::now();
  const CutGraph graph = sequence_graph(profile, options, "uniform");
  const int parts = sequence_parts(options, graph);
  std::vector<int> ends;
  for (int s = 1; s <= parts; ++s) ends.push_back(int(int64_t(graph.size()) * s / parts));
  return sequence_plan(profile, options, ends, "uniform", start);
}

}  // namespace antichain
