#include "pipeline/simulate/action_seconds.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"

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

double all_reduce_s(const PlanStage& stage, const Plan& plan, int64_t param_bytes, const Cluster& cluster) {
  std::vector<int> devices;
  for (int rank : stage.ranks) devices.push_back(device_of(plan, rank, cluster));
  return antichain::all_reduce_s(param_bytes, int(devices.size()), cluster.link(devices));
}

}  // namespace

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
                             const Schedule& schedule)
    : overhead_s_(profile.overhead_s) {
  for (int rank = 0; rank < plan.ranks(); ++rank)
    speed_.push_back(cluster.device(device_of(plan, rank, cluster)).speed);
  for (const PlanStage& stage : plan.stages) {
    const Profile& times = times_of(stage, plan, profile, cluster);
    const size_t rank = size_t(stage.ranks.front());
    const int buckets =
        rank < schedule.ranks.size() ? buckets_in(schedule.ranks[rank], int(of_stage_.size())) : 1;
    buckets_.push_back(buckets > 1 ? gradient_buckets(profile, stage.nodes, buckets)
                                   : std::vector<GradientBucket>(1));
    NodeCost sum;
    for (int n : stage.nodes) {
      const NodeCost& cost = times.nodes[size_t(n)].cost;
      sum.forward_s += cost.forward_s;
      sum.backward_input_s += cost.backward_input_s;
      sum.backward_weight_s += cost.backward_weight_s;
      sum.backward_parted_s += cost.backward_parted_s;
      sum.update_s += cost.update_s;
      sum.param_bytes += profile.nodes[size_t(n)].cost.param_bytes;
    }
    for (const int n : stage.recomputed) sum.backward_input_s += times.nodes[size_t(n)].cost.forward_s;
    ByVerb& s = of_stage_.emplace_back();
    s[size_t(Verb::forward)] = sum.forward_s + profile.overhead_s;
    s[size_t(Verb::backward)] = sum.backward_s() + profile.overhead_s;
    s[size_t(Verb::backward_input)] = sum.backward_input_s + profile.overhead_s;
    s[size_t(Verb::backward_weight)] = sum.late_weight_s() + profile.overhead_s;
    const UpdateTimes updates = update_times(sum.update_s + copies_update_s(times, stage.nodes),
                                             all_reduce_s(stage, plan, sum.param_bytes, cluster),
                                             int(stage.ranks.size()), plan.shard_optimiser);
    s[size_t(Verb::update)] = updates.update_s;
    s[size_t(Verb::reduce)] = updates.reduce_s;
    gather_s_.push_back(updates.gather_s);
  }
}

double ActionSeconds::passed_s(int rank, const Action& last, const Action& reduce) const {
  const double all_s = of_stage_[size_t(last.stage)][size_t(last.verb)];
  const GradientBucket whole, &of = reduce.bucket >= 0 ? bucket(reduce) : whole;
  const double part = last.verb == Verb::backward ? of.of_backward : of.of_weights;
  return antichain::passed_s(all_s, overhead_s_, part) / speed_[size_t(rank)];
}

void ActionSeconds::make_even() {
  ByVerb mean{};
  for (const ByVerb& s : of_stage_)
    for (size_t verb = 0; verb < mean.size(); ++verb) mean[verb] += s[verb] / double(of_stage_.size());
  for (ByVerb& s : of_stage_) s = mean;
}

double vote_s(const Plan& plan, const Cluster& cluster, int from, int to) {
  return from == to ? 0 : cluster.link(plan.device_of(from), plan.device_of(to)).seconds(0);
}

}  // namespace antichain
