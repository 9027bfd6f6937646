// This planner makes no pipeline: there is one stage, and every device is a replica of it. Pipelines compete
// with this.
#include <chrono>
#include <numeric>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/search/cut_graph.h"

namespace antichain {

// There is one antichain to consider: the last one.
Plan plan_data_parallel(const Profile& profile, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  PlanOptions replicated = options;
  if (options.replicas.off()) replicated.replicas.automatic = true;
  if (!options.replicas.of_stage.empty())
    throw Error("data-parallel makes every device a replica, but replicas were given for each stage",
                "leave the replicas to the method, or choose antichain", ExitCode::usage);
  check(replicated, profile);
  std::vector<PlanStage> stages = sequence_stages(profile, {cut_graph(profile).size()});
  stages[0].ranks.resize(size_t(options.stages));
  std::iota(stages[0].ranks.begin(), stages[0].ranks.end(), 0);
  return finish_plan(profile, replicated, std::move(stages), Method::data_parallel, 1, start);
}

}  // namespace antichain
