#include "pipeline/planning/few_plans.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "partition/plan/finish_plan.h"
#include "partition/search/contract.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/planning.h"
#include "pipeline/program/memory_shares.h"

namespace antichain {
namespace {

constexpr size_t most_plans = 6'000;
constexpr size_t most_nodes = 40, most_choices = 12;  // nodes that may be recomputed

bool can_be_tried(const PlanOptions& options) {
  const std::vector<Device>& devices = options.cluster.devices;
  return options.cluster.limits_memory() && of_a_step(options.objective) && options.chunks == 1 &&
         options.replicas.off() && !options.at_most && int(devices.size()) == options.stages &&
         std::ranges::count(devices, devices.front()) == int64_t(devices.size());
}

class AllPlans {
 public:
  AllPlans(const Profile& profile, const PlanOptions& options, const Policy& policy)
      : profile_(profile),
        options_(on_so_many(options, policy, options.stages)),
        policy_(policy),
        graph_(graph_to_cut(profile, options)),
        stage_of_(size_t(graph_.size())) {}

  std::optional<FewPlans> run() {
    if (options_.recompute)
      for (size_t n = 0; n < profile_.nodes.size(); ++n)
        if (profile_.nodes[n].role == Role::compute) may_recompute_.push_back(int(n));
    if (profile_.nodes.size() > most_nodes || may_recompute_.size() > most_choices || !cut(0) ||
        cuts_.empty())
      return std::nullopt;
    found_.least_bytes = std::numeric_limits<int64_t>::max();
    for (const std::vector<int>& stage_of : cuts_)
      for (unsigned again = 0; again < choices(); ++again) consider(stage_of, again);
    if (found_.fastest) found_.fastest->lower_bound_s = found_.fastest->objective_s();
    return std::move(found_);
  }

 private:
  unsigned choices() const { return 1u << may_recompute_.size(); }

  // Lists the cuts. Returns false where there are too many.
  bool cut(int v) {
    if (v == graph_.size()) {
      for (int s = 0; s < options_.stages; ++s)
        if (std::ranges::count(stage_of_, s) == 0) return true;
      cuts_.push_back(stage_of_);
      return cuts_.size() * choices() <= most_plans;
    }
    int first = 0;
    for (const int input : graph_.inputs[v]) first = std::max(first, stage_of_[size_t(input)]);
    for (int s = first; s < options_.stages; ++s) {
      stage_of_[size_t(v)] = s;
      if (!cut(v + 1)) return false;
    }
    return true;
  }

  void consider(const std::vector<int>& stage_of, unsigned again) {
    std::vector<PlanStage> stages(static_cast<size_t>(options_.stages));
    for (int v = 0; v < graph_.size(); ++v) {
      std::vector<int>& nodes = stages[size_t(stage_of[size_t(v)])].nodes;
      nodes.insert(nodes.end(), graph_.nodes[v].begin(), graph_.nodes[v].end());
    }
    for (size_t s = 0; s < stages.size(); ++s) {
      stages[s].ranks = {int(s)};
      std::ranges::sort(stages[s].nodes);
      for (size_t i = 0; i < may_recompute_.size(); ++i)
        if (again >> i & 1 && std::ranges::binary_search(stages[s].nodes, may_recompute_[i]))
          stages[s].recomputed.push_back(may_recompute_[i]);
    }
    const Profile& times = options_.cluster.profile(options_.cluster.device(0).profile, profile_);
    const auto barred = [&](const PlanStage& stage) { return sum_of(profile_, times, stage.nodes).barred; };
    if (std::ranges::any_of(stages, barred)) return;
    Plan plan =
        finish_plan(profile_, options_, std::move(stages), name_of(Method::antichain), int64_t(cuts_.size()));
    const Schedule schedule = make_flowing_schedule(profile_, plan, policy_, options_.microbatches);
    const int64_t bytes = std::ranges::max(peak_memory_bytes(schedule, plan, profile_));
    found_.least_bytes = std::min(found_.least_bytes, bytes);
    if (bytes > options_.cluster.device(0).memory_bytes) return;
    set_pace(plan, profile_, options_, policy_);
    if (!found_.fastest || plan.objective_s() < found_.fastest->objective_s())
      found_.fastest = std::move(plan);
  }

  const Profile& profile_;
  const PlanOptions options_;
  const Policy policy_;
  const CutGraph graph_;
  std::vector<int> may_recompute_;
  std::vector<int> stage_of_;           // per node of the graph
  std::vector<std::vector<int>> cuts_;  // by the same
  FewPlans found_;
};

}  // namespace

std::optional<FewPlans> try_all_plans(const Profile& profile, const PlanOptions& options,
                                      const Policy& policy) {
  if (!can_be_tried(options)) return std::nullopt;
  return AllPlans(profile, options, policy).run();
}

}  // namespace antichain
