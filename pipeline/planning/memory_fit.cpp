#include "pipeline/planning/memory_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/plan/plan_price.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/program/memory_shares.h"

namespace antichain {
namespace {

constexpr int most_refits = 6;

std::vector<int64_t> lacking(const std::vector<int64_t>& bytes, const Plan& plan, const Cluster& cluster) {
  std::vector<int64_t> lacks;
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    const int64_t limit = cluster.device(plan.device_of(int(rank))).memory_bytes;
    lacks.push_back(limit > 0 ? std::max<int64_t>(0, bytes[rank] - limit) : 0);
  }
  return lacks;
}

}  // namespace

std::vector<int64_t> lacking_bytes(const Schedule& schedule, const Plan& plan, const Profile& profile,
                                   const Cluster& cluster) {
  if (!cluster.limits_memory()) return std::vector<int64_t>(size_t(plan.ranks()));
  return lacking(peak_memory_bytes(schedule, plan, profile), plan, cluster);
}

int64_t lacking_bytes(const Plan& plan, const Profile& profile, const PlanOptions& options,
                      const Policy& policy) {
  if (options.beside_bytes.empty()) return lacking_bytes(plan, options.cluster);
  const Schedule schedule = make_flowing_schedule(profile, plan, policy, options.microbatches);
  const std::vector<int64_t> lacks = lacking_bytes(schedule, plan, profile, options.cluster);
  return std::reduce(lacks.begin(), lacks.end());
}

void check_memory(const Plan& plan, const Cluster& cluster, const std::vector<int64_t>& bytes) {
  const std::vector<int64_t> lacks = lacking(bytes, plan, cluster);
  const auto first = std::ranges::find_if(lacks, [](int64_t lack) { return lack > 0; });
  if (first == lacks.end()) return;
  const int rank = int(first - lacks.begin());
  const std::vector<int> stages = stages_of_rank(plan, rank);
  const bool one = stages.size() == 1;
  throw Error(
      fmt::format("{} {} of the plan by {} {} {} bytes, but {} device has {}: this split needs {} bytes on "
                  "each device",
                  one ? "stage" : "stages", fmt::join(stages, " and "), plan.method, one ? "needs" : "need",
                  bytes[size_t(rank)], one ? "its" : "their",
                  cluster.device(plan.device_of(rank)).memory_bytes, std::ranges::max(bytes)),
      "use larger devices or more of them, or plan by the method antichain, which looks for a split that "
      "fits");
}

void check_formula(const Plan& plan, const Cluster& cluster) {
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < plan.ranks(); ++rank) bytes.push_back(memory_of_rank(plan, rank));
  check_memory(plan, cluster, bytes);
}

void check_program(const Schedule& schedule, const Plan& plan, const Profile& profile,
                   const Cluster& cluster) {
  if (cluster.limits_memory()) check_memory(plan, cluster, peak_memory_bytes(schedule, plan, profile));
}

std::vector<int64_t> message_bytes(const std::vector<Traffic>& traffic,
                                   const std::vector<std::vector<int>>& ranks,
                                   const std::vector<int>& in_flight, int microbatches) {
  std::vector<int64_t> bytes(ranks.size());
  for (const Traffic& t : traffic) {
    const size_t from = size_t(t.from_stage), to = size_t(t.to_stage);
    if (ranks[from] == ranks[to]) continue;
    const int64_t most = of_one_replica(microbatches, int(ranks[to].size()));
    bytes[to] += std::min<int64_t>(in_flight[to] + 1, most) * (t.tensor_bytes + t.gradient_bytes);
    bytes[from] += 2 * t.gradient_bytes;
  }
  return bytes;
}

std::vector<int64_t> beside_bytes(const Schedule& schedule, const Plan& plan, const Profile& profile,
                                  const PlanOptions& options) {
  std::vector<int64_t> bytes = peak_memory_bytes(schedule, plan, profile);
  const std::vector<StagePrice> prices = price(plan, profile, options);
  std::vector<std::vector<int>> ranks;
  std::vector<int> in_flight;
  for (const PlanStage& stage : plan.stages) ranks.push_back(stage.ranks);
  for (const StagePrice& of : prices) in_flight.push_back(of.in_flight);
  StageAdder add(profile);
  const std::vector<Traffic>& traffic =
      add(plan.stage_of(int(profile.nodes.size())), int(plan.stages.size())).traffic;
  const std::vector<int64_t> messages = message_bytes(traffic, ranks, in_flight, options.microbatches);
  for (size_t s = 0; s < ranks.size(); ++s)
    for (const int rank : ranks[s]) bytes[size_t(rank)] -= prices[s].memory_bytes + messages[s];
  return bytes;
}

bool refit(Plan& plan, const Profile& profile, const PlanOptions& options, const Schedule& schedule,
           const StageFitter& fitter) {
  PlanOptions less = options;
  Plan next = plan;
  for (int tries = 0; tries < most_refits; ++tries) {
    const std::vector<int64_t> lacks = lacking_bytes(schedule, next, profile, options.cluster);
    if (std::ranges::all_of(lacks, [](int64_t lack) { return lack == 0; })) {
      plan = std::move(next);
      return true;
    }
    for (int rank = 0; rank < next.ranks(); ++rank)
      if (lacks[size_t(rank)] > 0) {
        const int64_t left = memory_of_rank(next, rank) - lacks[size_t(rank)];
        if (left <= 0) return false;
        less.cluster.devices[size_t(next.device_of(rank))].memory_bytes = left;
      }
    make_fit(next, profile, less, fitter);
    if (lacking_bytes(next, less.cluster) > 0) return false;
  }
  return false;
}

}  // namespace antichain
