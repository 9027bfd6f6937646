#include "app/train/rebalance.h"

#include <fmt/format.h>

#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

// Has each rank compute on the device of the same number, which it can't change while it runs.
Plan on_own_devices(Plan plan) {
  for (PlanStage& stage : plan.stages) {
    if (!stage.devices.empty()) stage.ranks = stage.devices;
    stage.devices.clear();
  }
  return plan;
}

}  // namespace

std::string why_plan_stays(const TrainCommandOptions& o) {
  const PlanningOptions& planning = o.planning;
  if (!planning.plan_file.empty()) return "the plan is that of --plan " + planning.plan_file;
  if (!planning.cuts.empty()) return "the network is cut as --cuts says";
  if (method(planning.method) != Method::antichain) return "--method " + planning.method + " makes the plan";
  if (!parse_replicas(planning.replicas).off()) return "stages may have replicas (--replicas)";
  if (o.emulate_delays > 0) return "--emulate-delays is for one rank";
  if (o.machine.device != "cpu") return "state moves between CPU ranks so far";
  if (asynchronous_policy(o)) return "under --schedule " + o.schedule.schedule + " ranks have older weights";
  if (o.schedule.schedule == planned_order)
    return "--schedule auto searches an order for each plan, for longer than a run should pause";
  if (!is_training_policy(o.schedule.schedule))
    return fmt::format("--schedule {} is made for one plan", o.schedule.schedule);
  return "";
}

std::unique_ptr<Rebalancer> make_rebalancer(const TrainCommandOptions& options, const RebalancedRun& run,
                                            const Plan& plan, const Schedule& schedule,
                                            const Timeline& predicted, Rebalancer::Listener listener) {
  if (options.rebalance == "off" || !why_plan_stays(options).empty() || run.rank.job.size() == 1 ||
      !run.rank.prints() || !why_not_moved(plan, plan).empty())
    return nullptr;
  std::vector<Device> devices;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    devices.push_back(run.task.options.cluster.device(plan.device_of(rank)));
  const Division first{.plan = plan,
                       .schedule = schedule,
                       .pace_s = predicted.period_s,
                       .busy_s = predicted.busy_s,
                       .speeds = std::vector<double>(devices.size(), 1.0)};
  const auto planner = [run, devices, first](const Division& now, const std::vector<double>& speeds) {
    run.rank.job.activity().doing("planning for the ranks' present speeds");
    const Progress::Computing computing(run.rank.job.activity());
    PlanTask task = run.task;
    Cluster& cluster = task.options.cluster;
    cluster.devices = devices;
    for (size_t rank = 0; rank < devices.size(); ++rank) cluster.devices[rank].speed *= speeds[rank];
    const auto divided = [&](const Plan& by, const Schedule& ordered) {
      Division division{.plan = by, .schedule = ordered, .setting = run.setting, .speeds = speeds};
      for (PlanStage& stage : division.plan.stages) stage.devices.clear();
      add_plan(division.setting, division.plan, run.profile, ordered);
      const Timeline step = simulate(ordered, division.plan, run.profile, cluster, task.options.steps);
      division.pace_s = step.period_s, division.busy_s = step.busy_s;
      return division;
    };
    const Plan best = on_own_devices(plan_here(run.profile, task));
    const Schedule ordered = task.choice.schedule(run.profile, best, task.options);
    return Rebalancer::Planned{divided(now.plan, now.schedule),
                               divided(best, run.votes ? with_votes(ordered) : ordered)};
  };
  return std::make_unique<Rebalancer>(first, planner, std::move(listener));
}

}  // namespace antichain
