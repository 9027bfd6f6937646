#include "pipeline/simulate/action_seconds.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"

namespace antichain {
namespace {

int device_of(const Plan& plan, int rank, const Cluster& cluster) {
  const int device = plan.device_of(rank);
  if (!cluster.devices.empty() && device >= int(cluster.devices.size()))
    throw Error(fmt::format("the plan puts rank {} on device {}, but the cluster's devices are 0 to {}", rank,
                            device, int(cluster.devices.size()) - 1),
                "plan again for this cluster");
  return device;
}

const Link& link_among(const PlanStage& stage, const Plan& plan, const Cluster& cluster) {
  std::vector<int> devices;
  for (int rank : stage.ranks) devices.push_back(device_of(plan, rank, cluster));
  return cluster.link(devices);
}

[[noreturn]] void refuse_barred(const PlanStage& stage, const Plan& plan, const Profile& times) {
  const auto barred = std::ranges::find_if(stage.nodes, [&](int n) { return times.nodes[size_t(n)].barred; });
  throw Error(fmt::format("the plan puts node {} on device {}, whose profile bars it",
                          times.nodes[size_t(*barred)].name, plan.device_of(stage.ranks.front())),
              "plan again for this cluster, by the method antichain, or correct \"barred\" in the profile");
}

}  // namespace

StageTimes stage_times(const StageSum& sum, double speed) {
  return {(sum.forward_s + sum.overhead_s) / speed, (sum.backward_s + sum.overhead_s) / speed,
          (sum.backward_input_s + sum.overhead_s) / speed, (sum.late_weight_s + sum.overhead_s) / speed,
          sum.update_s / speed};
}

const Profile& times_of(const PlanStage& stage, const Plan& plan, const Profile& own,
                        const Cluster& cluster) {
  const auto profile_of = [&](int rank) { return cluster.device(device_of(plan, rank, cluster)).profile; };
  for (int rank : stage.ranks)
    if (profile_of(rank) != profile_of(stage.ranks.front()))
      throw Error(
          fmt::format(
              "the replicas of a stage have one profile, but ranks {} and {} of the plan have devices "
              "with different ones",
              stage.ranks.front(), rank),
          "plan again for this cluster");
  return cluster.profile(profile_of(stage.ranks.front()), own);
}

ActionSeconds::ActionSeconds(const Plan& plan, const Profile& profile, const Cluster& cluster,
                             const Schedule& schedule) {
  for (int rank = 0; rank < plan.ranks(); ++rank)
    speed_.push_back(cluster.device(device_of(plan, rank, cluster)).speed);
  for (const PlanStage& stage : plan.stages) {
    const Profile& times = times_of(stage, plan, profile, cluster);
    const StageSum sum = sum_of(profile, times, stage.nodes, stage.recomputed);
    if (sum.barred) refuse_barred(stage, plan, times);
    const size_t rank = size_t(stage.ranks.front());
    const int buckets =
        rank < schedule.ranks.size() ? buckets_in(schedule.ranks[rank], int(of_stage_.size())) : 1;
    buckets_.push_back(buckets > 1 ? gradient_buckets(profile, times, stage.nodes, buckets)
                                   : std::vector<GradientBucket>(1));
    ByVerb& s = of_stage_.emplace_back();
    const StageTimes its = stage_times(sum, 1);
    for (const Verb verb : {Verb::forward, Verb::backward, Verb::backward_input, Verb::backward_weight})
      s[size_t(verb)] = its.of(verb);
    updates_.push_back(
        update_times(sum, int(stage.ranks.size()), link_among(stage, plan, cluster), plan.shard_optimiser));
    overhead_s_.push_back(sum.overhead_s);
  }
}

double ActionSeconds::passed_s(int rank, const Action& last, const Action& reduce) const {
  const double all_s = of_stage_[size_t(last.stage)][size_t(last.verb)];
  const GradientBucket whole, &of = reduce.bucket >= 0 ? bucket(reduce) : whole;
  const double part = last.verb == Verb::backward ? of.of_backward : of.of_weights;
  return antichain::passed_s(all_s, overhead_s_[size_t(last.stage)], part) / speed_[size_t(rank)];
}

void ActionSeconds::make_even() {
  const double stages = double(of_stage_.size());
  ByVerb mean{};
  UpdateTimes mean_update;
  for (const ByVerb& s : of_stage_)
    for (size_t verb = 0; verb < mean.size(); ++verb) mean[verb] += s[verb] / stages;
  for (const UpdateTimes& u : updates_)
    mean_update.reduce_s += u.reduce_s / stages, mean_update.work_s += u.work_s / stages;
  for (ByVerb& s : of_stage_) s = mean;
  for (UpdateTimes& u : updates_) u.reduce_s = mean_update.reduce_s, u.work_s = mean_update.work_s;
}

double vote_s(const Plan& plan, const Cluster& cluster, int from, int to) {
  return from == to ? 0 : cluster.link(plan.device_of(from), plan.device_of(to)).seconds(0);
}

}  // namespace antichain
