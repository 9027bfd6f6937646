#include "pipeline/planning/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/plan/plan_price.h"
#include "partition/planners/planner.h"

namespace antichain {
namespace {

// Returns devices of the cluster, the fastest first where there are more than are used.
std::vector<int> used_devices(const Cluster& cluster, int ranks) {
  if (int(cluster.devices.size()) > ranks) return cluster.fastest(ranks);
  std::vector<int> devices(static_cast<size_t>(ranks));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

constexpr int parts_of_spare_memory = 16;

// Has stages of one rank recompute what takes least time, where the memory beyond what each needs at least is
// dealt out to them in so many equal parts.
class SharedMemoryOfRank {
 public:
  SharedMemoryOfRank(const StageFitter& fitter, std::vector<PlanStage*> stages, std::vector<StageSeat> seats)
      : fitter_(fitter), stages_(std::move(stages)), seats_(std::move(seats)) {}

  void deal_out() {
    int64_t spare = seats_.front().memory_bytes;
    for (size_t s = 0; s < stages_.size(); ++s) {
      seats_[s].memory_bytes = fitter_.least(stages_[s]->nodes, seats_[s]).bytes;
      spare -= seats_[s].memory_bytes;
    }
    if (spare < 0) return;
    part_ = spare / parts_of_spare_memory;
    // best[s][p] has the least time of the first s stages with p parts, and how many of these the last has.
    std::vector<std::vector<Dealt>> best(stages_.size() + 1, std::vector<Dealt>(parts_of_spare_memory + 1));
    for (size_t s = 0; s < stages_.size(); ++s)
      for (int parts = 0; parts <= parts_of_spare_memory; ++parts) {
        Dealt& found = best[s + 1][size_t(parts)];
        found.ns = std::numeric_limits<int64_t>::max();
        for (int own = 0; own <= parts; ++own)
          if (const int64_t ns = best[s][size_t(parts - own)].ns + fit(s, own).ns; ns < found.ns)
            found = {ns, own};
      }
    for (size_t s = stages_.size(), parts = parts_of_spare_memory; s-- > 0;) {
      const int own = best[s + 1][parts].own;
      stages_[s]->recomputed = fit(s, own).of(stages_[s]->nodes);
      parts -= size_t(own);
    }
  }

 private:
  struct Dealt {
    int64_t ns = 0;
    int own = 0;
  };
  const RecomputeChoice& fit(size_t s, int parts) const {
    StageSeat seat = seats_[s];
    seat.memory_bytes += parts * part_;
    return fitter_.fit(stages_[s]->nodes, seat).choice.value();
  }

  const StageFitter& fitter_;
  const std::vector<PlanStage*> stages_;
  std::vector<StageSeat> seats_;
  int64_t part_ = 0;
};

}  // namespace

void make_fit(Plan& plan, const Profile& profile, const PlanOptions& options, const StageFitter& fitter) {
  const std::vector<StagePrice> prices = price(plan, profile, options);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    std::vector<PlanStage*> stages;
    std::vector<StageSeat> seats;
    int64_t bytes = 0;
    for (const int s : stages_of_rank(plan, rank)) {
      const StagePrice& of = prices[size_t(s)];
      stages.push_back(&plan.stages[size_t(s)]);
      seats.push_back({of.in_flight, of.devices, of.limit_bytes, of.speed,
                       options.cluster.device(plan.device_of(rank)).profile});
      bytes += of.memory_bytes;
    }
    if (stages.front()->ranks.front() != rank || seats.front().memory_bytes == 0 ||
        bytes <= seats.front().memory_bytes)
      continue;
    if (stages.size() > 1)
      SharedMemoryOfRank(fitter, std::move(stages), std::move(seats)).deal_out();
    else if (const auto& choice = fitter.fit(stages[0]->nodes, seats[0]).choice)
      stages[0]->recomputed = choice->of(stages[0]->nodes);
  }
  plan = finish_plan(profile, options, std::move(plan.stages), plan.method, plan.states);
}

PlanOptions on_so_many(const PlanOptions& options, const Policy& policy, int ranks) {
  PlanOptions asked = options;
  asked.in_flight = policy.in_flight_on(ranks, options.chunks, options.microbatches);
  if (const int most = options.most_in_flight; most > 0)
    asked.in_flight = [most, rule = std::move(asked.in_flight)](const PipelinePlace& place) {
      return std::min(most, rule(place));
    };
  return asked;
}

PlanOptions for_schedule(PlanOptions options, const Schedule& schedule) {
  options.in_flight = in_flight_of(schedule.ranks);
  return options;
}

PlanOptions one_device_a_stage(const PlanOptions& options, const Policy& policy) {
  if (options.chunks == 1) return options;
  PlanOptions asked = on_so_many(options, policy, options.stages);
  asked.stages = options.stages * options.chunks;
  asked.chunks = 1;
  asked.at_most = false;
  asked.cluster = one_link(options.cluster.link(used_devices(options.cluster, options.stages)));
  return asked;
}

Ranks ranks_of_stages(const PlanOptions& options, const Policy& policy, int stages) {
  const int ranks = stages / options.chunks;
  Ranks found{.device = used_devices(options.cluster, ranks)};
  for (int s = 0; s < stages; ++s) found.of_stage.push_back({position_of_stage(policy.placement, s, ranks)});
  return found;
}

Plan plan_by(Method method, const Profile& profile, const PlanOptions& options, const Policy& policy,
             const StageFitter& fitter) {
  Plan plan = planner(method)(profile, one_device_a_stage(options, policy));
  validate(plan, profile);
  if (options.recompute && options.chunks == 1) make_fit(plan, profile, options, fitter);
  return on_its_ranks(std::move(plan), options, policy);
}

Plan on_its_ranks(Plan plan, const PlanOptions& options, const Policy& policy) {
  if (options.chunks == 1) return plan;
  const int stages = int(plan.stages.size());
  if (has_replicas(plan) || stages % options.chunks != 0)
    throw Error(fmt::format("the schedule {} has {} stages a rank and no replicas, but the method {} made a "
                            "plan of {} stage{}{}",
                            policy.name, options.chunks, plan.method, stages, stages == 1 ? "" : "s",
                            has_replicas(plan) ? " with replicas" : ""),
                "choose another method or schedule", ExitCode::usage);
  const Ranks ranks = ranks_of_stages(options, policy, stages);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].ranks = ranks.of_stage[s];
    plan.stages[s].devices.clear();
    for (const int rank : plan.stages[s].ranks) plan.stages[s].devices.push_back(ranks.device[size_t(rank)]);
  }
  return plan;
}

}  // namespace antichain
