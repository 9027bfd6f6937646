// The exact planner: antichain DAG, smallest bottleneck, tie rule.
//
//   CutGraph ─▶ chain cover ─▶ antichain DAG ─▶ smallest bottleneck ─▶ tie rule ─▶ Plan
//
// Beyond max_states the search keeps to the prefixes of the graph order; the plan's lower bound then says how far
// from the best it can be at most.
#include <algorithm>
#include <optional>

#include "partition/bottleneck.h"
#include "partition/choose_cuts.h"
#include "partition/cuts.h"
#include "partition/planner.h"

namespace antichain {
namespace {

// Prefixes alone can always be cut into as many stages as there are nodes, so this search has an answer; the whole
// lattice contains the prefixes, so its answer is at most as large.
int64_t best_of_prefixes(const AntichainDag& prefixes, int stages, bool transfers) {
  int64_t high = prefixes.work_ns(prefixes.full());
  for (int state = 0; transfers && state < prefixes.states(); ++state)
    high = std::max(high, prefixes.transfer_ns(state));
  return BottleneckSearch(prefixes, stages, transfers).minimum(prefixes.graph().lower_bound_ns(stages), high);
}

// The search keeps one number per state and stage: at most a gigabyte of them.
constexpr int64_t max_table = int64_t(1) << 27;

std::optional<AntichainDag> whole_lattice(const CutGraph& graph, const PlanOptions& options) {
  std::optional<ChainCover> cover = chain_cover(graph);
  if (!cover) return std::nullopt;
  return AntichainDag::build(graph, std::move(*cover),
                             std::min(options.max_states, max_table / options.stages));
}

}  // namespace

Plan plan_antichain(const Profile& profile, const PlanOptions& options) {
  auto start = std::chrono::steady_clock::now();
  bool transfers = transfers_count(options);
  CutGraph graph = cut_graph(profile, options.link);
  check(options, graph, profile.model);

  AntichainDag prefixes = AntichainDag::prefixes(graph);
  int64_t high = best_of_prefixes(prefixes, options.stages, transfers);
  std::optional<AntichainDag> lattice = whole_lattice(graph, options);
  const AntichainDag& dag = lattice ? *lattice : prefixes;

  BottleneckSearch search(dag, options.stages, transfers);
  search.minimum(graph.lower_bound_ns(options.stages), high);
  Plan plan = to_plan(profile, options, dag, choose_cuts(search), "antichain", start);
  if (lattice) plan.lower_bound_s = plan.bottleneck_s;
  return plan;
}

}  // namespace antichain
