#include "partition/plan/finish_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "framework/error.h"
#include "partition/plan/plan_price.h"

namespace antichain {
namespace {

[[noreturn]] void refuse(const std::string& sentence, const std::string& hint) {
  throw Error(sentence, hint, ExitCode::usage);
}

}  // namespace

bool transfers_count(const PlanOptions& options) { return options.objective != Objective::compute; }

void check(const PlanOptions& options, const Profile& profile) {
  const auto nodes = std::count_if(profile.nodes.begin(), profile.nodes.end(),
                                   [](const ProfileNode& node) { return node.role != Role::input; });
  const int devices = options.devices();
  if (options.stages < 1)
    refuse(fmt::format("a plan of {} stages was asked for", options.stages), "ask for at least 1");
  if (options.max_states < 1)
    refuse(fmt::format("a search of at most {} states was asked for", options.max_states),
           "allow at least 1");
  if (options.microbatches < 1)
    refuse(fmt::format("a plan for {} micro-batches was asked for", options.microbatches),
           "ask for at least 1");
  if (nodes == 0)
    throw Error(fmt::format("{} has no node to plan, only inputs", profile.model), "give another model");
  if (options.stages > nodes && !options.at_most && !options.replicas.automatic)
    refuse(fmt::format("{} stages were asked for, but {} has only {} nodes", options.stages, profile.model,
                       nodes),
           "ask for fewer stages");
  if (options.replicas.automatic && !options.at_most && options.stages > nodes * options.microbatches)
    refuse(fmt::format("{} devices were asked for, but {} has only {} nodes, each on at most {} devices: one "
                       "per micro-batch",
                       options.stages, profile.model, nodes, options.microbatches),
           "ask for fewer devices or more micro-batches");
  for (int r : options.replicas.of_stage)
    if (r < 1) refuse(fmt::format("a stage of {} replicas was asked for", r), "give every stage at least 1");
  if (!options.replicas.of_stage.empty() && int(options.replicas.of_stage.size()) != options.stages)
    refuse(fmt::format("replicas are given for {} stages, but {} were asked for",
                       options.replicas.of_stage.size(), options.stages),
           "give one count for every stage");
  if (!options.cluster.devices.empty() && devices > int(options.cluster.devices.size()))
    refuse(fmt::format("{} devices were asked for, but the cluster has only {}", devices,
                       options.cluster.devices.size()),
           "ask for fewer stages or replicas");
}

int64_t bound_without_search_ns(const Profile& profile, const PlanOptions& options, int devices) {
  std::vector<double> speeds(size_t(devices), 1);
  if (!options.cluster.devices.empty()) {
    speeds.clear();
    for (const Device& device : options.cluster.devices) speeds.push_back(device.speed);
    std::sort(speeds.begin(), speeds.end(), std::greater<>());
    speeds.resize(std::min(speeds.size(), size_t(devices)));
  }
  int64_t total = 0, largest = 0, nodes = 0;
  for (const ProfileNode& node : profile.nodes) {
    if (node.role == Role::input) continue;
    ++nodes;
    total += work_ns(node.cost, 1);
    largest = std::max(largest, work_ns(node.cost, speeds.front()));
  }
  // At other speeds every node is rounded to whole ns.
  const bool exact = speeds.front() == 1 && speeds.back() == 1;
  const int64_t share =
      exact ? (total + devices - 1) / devices
            : int64_t(double(total) / std::accumulate(speeds.begin(), speeds.end(), 0.0)) - nodes;
  return std::max<int64_t>(0, options.replicas.off() ? std::max(share, largest) : share);
}

Plan finish_plan(const Profile& profile, const PlanOptions& options, std::vector<PlanStage> stages,
                 std::string_view method, int64_t states) {
  Plan plan;
  plan.model = profile.model;
  plan.graph_hash = profile.graph_hash;
  plan.method = method;
  plan.objective = options.objective;
  plan.stages = std::move(stages);
  plan.shard_optimiser = options.shard_optimiser && has_replicas(plan);
  int64_t bottleneck = 0;
  const std::vector<StagePrice> prices = price(plan, profile, options);
  for (const RankPrice& rank : price_by_rank(plan, prices)) bottleneck = std::max(bottleneck, rank.busy_ns);
  for (size_t s = 0; s < prices.size(); ++s) {
    if (transfers_count(options)) bottleneck = std::max(bottleneck, prices[s].boundary_ns);
    plan.stages[s].memory_bytes = prices[s].memory_bytes;
  }
  plan.bottleneck_s = double(bottleneck) / 1e9;
  plan.lower_bound_s = double(bound_without_search_ns(profile, options, plan.ranks())) / 1e9;
  if (of_a_step(options.objective)) plan.lower_bound_s *= options.microbatches;
  plan.states = states;
  return plan;
}

int64_t memory_of_rank(const Plan& plan, int rank) {
  int64_t bytes = 0;
  for (const int s : stages_of_rank(plan, rank)) bytes += plan.stages[size_t(s)].memory_bytes;
  return bytes;
}

int rank_that_does_not_fit(const Plan& plan, const Cluster& cluster) {
  for (const PlanStage& stage : plan.stages)
    for (const int rank : stage.ranks) {
      const int64_t limit = cluster.device(plan.device_of(rank)).memory_bytes;
      if (limit > 0 && memory_of_rank(plan, rank) > limit) return rank;
    }
  return -1;
}

int64_t lacking_bytes(const Plan& plan, const Cluster& cluster) {
  int64_t lacking = 0;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    if (const int64_t limit = cluster.device(plan.device_of(rank)).memory_bytes; limit > 0)
      lacking += std::max<int64_t>(0, memory_of_rank(plan, rank) - limit);
  return lacking;
}

}  // namespace antichain
