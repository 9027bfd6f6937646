// The simplest planner: equal node counts, in graph order. What the exact one is compared with.
#include "partition/cuts.h"
#include "partition/planner.h"

namespace antichain {

Plan plan_uniform(const Profile& profile, const PlanOptions& options) {
  auto start = std::chrono::steady_clock::now();
  CutGraph graph = cut_graph(profile, options.link);
  check(options, graph, profile.model);
  int64_t nodes = graph.size();
  Cuts cuts;
  for (int s = 0; s <= options.stages; ++s) cuts.push_back(int(nodes * s / options.stages));
  return to_plan(profile, options, AntichainDag::prefixes(std::move(graph)), cuts, "uniform", start);
}

}  // namespace antichain
