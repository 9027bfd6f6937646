// This planner is PipeDream's recurrence as published. It is a baseline, over the antichain DAG's states in
// topological order:
//
//     A(j, m) = min( T(∅ → j, m),  min over states k in j and m' < m of  max( A(k, m − m'), T(k → j, m') ) )
//
// T(k → j, m) is the price of a stage on m devices (partition/planners/pipedream_cost.h) that holds what
// state j has beyond state k. "Straight" means one device a stage. `at_most` is its use_fewer_machines. There
// is one level of links.
//
// Source: D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019,
// section 3.1, and the published optimizer_graph_hierarchical.py. Where that leaves something open, or
// depends on hash order:
//   * Of equal plans it keeps the first it meets while it walks a set of states. Here the order is that of
//     the state sequence, then fewest devices in the last stage.
//   * Its search of states starts from one source only. Here all sources count.
//   * Its augmented antichains hold too many nodes where several branches are open, which over-counts what
//     crosses a boundary. That enters only with its option to compress activations, which is off by default
//     and not here.
//   * Its memory check is off by default, and not here either: the caller sees whether the plan fits.
//   * A stage always has a node more than the one before, as k is strictly inside j; it may have no work.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/planners/pipedream_cost.h"
#include "partition/search/antichain_dag.h"

namespace antichain {
namespace {

constexpr int max_antichains = 5000;

struct Cell {
  double ns = std::numeric_limits<double>::infinity();  // of the slowest stage
  int split = -1, split_devices = 0;  // the state before the last stage, and the devices up to it
  int devices = 0;                    // of the last stage
};

class Recurrence {
 public:
  Recurrence(const AntichainDag& dag, const PlanOptions& options)
      : dag_(dag),
        params_(dag.sums(dag.graph().param_bytes)),
        link_(pipedream_link(options)),
        devices_(options.stages),
        most_replicas_(options.replicas.automatic ? options.stages : 1),
        fewer_devices_(options.at_most),
        cells_(size_t(dag.states()) * (devices_ + 1)) {
    for (int state = 1; state < dag.states(); ++state) solve(state);
  }

  std::vector<PlanStage> stages() const {
    std::vector<PlanStage> stages;
    int state = dag_.full(), devices = devices_;
    while (state > 0) {
      const Cell& cell = at(state, devices);
      ANTICHAIN_CHECK(cell.devices > 0, "there are more stages than nodes");
      const int before = std::max(cell.split, dag_.empty());
      stages.push_back({dag_.between(before, state), std::vector<int>(size_t(cell.devices))});
      state = before;
      devices = cell.split_devices;
    }
    std::reverse(stages.begin(), stages.end());
    int rank = 0;
    for (PlanStage& stage : stages)
      for (int& r : stage.ranks) r = rank++;
    return stages;
  }

 private:
  const Cell& at(int state, int devices) const { return cells_[size_t(state) * (devices_ + 1) + devices]; }
  Cell& at(int state, int devices) { return cells_[size_t(state) * (devices_ + 1) + devices]; }

  double stage_ns(int before, int after, int replicas) const {
    return pipedream_stage_ns(dag_.work_ns(after) - dag_.work_ns(before), params_[after] - params_[before],
                              replicas, link_);
  }

  void solve(int state) {
    for (int m = 1; m <= most_replicas_; ++m) at(state, m) = {stage_ns(dag_.empty(), state, m), -1, 0, m};
    std::vector<int> inside;
    std::vector<double> last_ns;  // [inside][replicas − 1]
    for (int k = 1; k < state; ++k) {
      if (!dag_.inside(k, state)) continue;
      inside.push_back(k);
      for (int r = 1; r <= most_replicas_; ++r) last_ns.push_back(stage_ns(k, state, r));
    }
    for (int m = 2; m <= devices_; ++m) {
      Cell& best = at(state, m);
      if (fewer_devices_) improve(best, at(state, m - 1));
      for (size_t i = 0; i < inside.size(); ++i)
        for (int r = 1; r <= std::min(most_replicas_, m - 1); ++r)
          improve(best, {std::max(at(inside[i], m - r).ns, last_ns[i * most_replicas_ + r - 1]), inside[i],
                         m - r, r});
    }
  }

  static void improve(Cell& cell, const Cell& candidate) {
    if (candidate.ns < cell.ns) cell = candidate;
  }

  const AntichainDag& dag_;
  const std::vector<int64_t> params_;  // per state
  const Link& link_;
  const int devices_, most_replicas_;
  const bool fewer_devices_;
  std::vector<Cell> cells_;  // [state][devices]
};

AntichainDag antichains(const CutGraph& graph, const std::string& model) {
  std::optional<ChainCover> cover = chain_cover(graph);
  std::optional<AntichainDag> dag;
  if (cover) dag = AntichainDag::build(graph, std::move(*cover), max_antichains + 1);  // and the empty one
  if (!dag)
    throw Error(
        fmt::format("PipeDream's recurrence compares every pair of antichains, and {} has more than {}; the "
                    "published code refuses such graphs too",
                    model, max_antichains),
        "choose antichain, which needs no pairs");
  return std::move(*dag);
}

}  // namespace

double pipedream_stage_ns(int64_t work_ns, int64_t param_bytes, int replicas, const Link& link) {
  const double all_reduce_s =
      link.bytes_per_s > 0 ? 4.0 * (replicas - 1) * double(param_bytes) / (link.bytes_per_s * replicas) : 0;
  return (double(work_ns) + 1e9 * all_reduce_s) / replicas;
}

const Link& pipedream_link(const PlanOptions& options) {
  std::vector<int> devices(size_t(options.stages));
  std::iota(devices.begin(), devices.end(), 0);
  return options.cluster.link(devices);
}

Plan plan_pipedream(const Profile& profile, const PlanOptions& options) {
  check(options, profile);
  if (!options.replicas.of_stage.empty())
    throw Error(
        "pipedream chooses by itself how many replicas a stage has, but they were given for each stage",
        "turn replicas off or leave them to the method, or choose antichain", ExitCode::usage);
  const AntichainDag dag = antichains(cut_graph(profile), profile.model);
  return finish_plan(profile, options, Recurrence(dag, options).stages(), name_of(Method::pipedream),
                     dag.states());
}

}  // namespace antichain
