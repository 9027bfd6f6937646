#include "partition/cuts.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"

namespace antichain {

int64_t bottleneck_ns(const AntichainDag& dag, const Cuts& cuts, bool transfers_count) {
  int64_t slowest = 0;
  for (size_t s = 0; s + 1 < cuts.size(); ++s) {
    slowest = std::max(slowest, dag.work_ns(cuts[s + 1]) - dag.work_ns(cuts[s]));
    if (transfers_count) slowest = std::max(slowest, dag.transfer_ns(cuts[s]));
  }
  return slowest;
}

bool transfers_count(const PlanOptions& options) {
  if (options.objective == "compute-or-transfer") return true;
  if (options.objective == "compute") return false;
  throw Error(fmt::format("there is no objective called \"{}\"", options.objective),
              "choose compute or compute-or-transfer", ExitCode::usage);
}

void check(const PlanOptions& options, const CutGraph& graph, const std::string& model) {
  auto refuse = [](const std::string& sentence, const std::string& hint) {
    throw Error(sentence, hint, ExitCode::usage);
  };
  if (options.stages < 1)
    refuse(fmt::format("a plan of {} stages was asked for", options.stages), "ask for at least 1");
  if (options.max_states < 1)
    refuse(fmt::format("a search of at most {} states was asked for", options.max_states),
           "allow at least 1");
  if (graph.size() == 0)
    throw Error(fmt::format("{} has no node to plan, only inputs", model), "give another model");
  if (options.stages > graph.size())
    refuse(fmt::format("{} stages were asked for, but {} has only {} nodes", options.stages, model,
                       graph.size()),
           "ask for fewer stages");
}

Plan to_plan(const Profile& profile, const PlanOptions& options, const AntichainDag& dag, const Cuts& cuts,
             const std::string& method, std::chrono::steady_clock::time_point start) {
  Plan plan;
  plan.model = profile.model;
  plan.graph_hash = profile.graph_hash;
  plan.method = method;
  plan.objective = options.objective;
  for (size_t s = 0; s + 1 < cuts.size(); ++s) {
    std::vector<int> before = dag.down_set(cuts[s]), after = dag.down_set(cuts[s + 1]);
    PlanStage stage;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(stage.nodes));
    stage.ranks = {int(s)};
    plan.stages.push_back(std::move(stage));
  }
  plan.bottleneck_s = double(bottleneck_ns(dag, cuts, transfers_count(options))) / 1e9;
  plan.lower_bound_s = double(dag.graph().lower_bound_ns(options.stages)) / 1e9;
  plan.states = dag.states();
  plan.planning_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace antichain
