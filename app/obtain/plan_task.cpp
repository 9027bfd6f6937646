#include "app/obtain/plan_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "app/cli/number_text.h"
#include "app/obtain/schedule.h"
#include "framework/error.h"
#include "framework/prediction.h"
#include "partition/plan/cut_file.h"
#include "partition/plan/finish_plan.h"
#include "pipeline/planning/planning.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

std::string words(const Link& link) {
  if (link.is_free()) return "free";
  const double unit = link.bytes_per_s >= 1e9 ? 1e9 : 1e6;
  const std::string speed =
      link.bytes_per_s > 0 ? fmt::format("{:.4g} {}", link.bytes_per_s / unit, unit > 1e6 ? "GB/s" : "MB/s")
                           : "infinitely fast";
  const std::string share =
      link.core_share > 0 ? fmt::format(", {:.0f} % of a rank's core", 100 * link.core_share) : "";
  return fmt::format("{}, latency {:.4g} us{}", speed, link.latency_s * 1e6, share);
}

std::string words(const Cluster& cluster) {
  const bool nodes = std::ranges::any_of(cluster.devices, [](const Device& d) { return d.node > 0; });
  if (!nodes) return words(cluster.within_node);
  return fmt::format("within a node {}; between nodes {}", words(cluster.within_node),
                     words(cluster.between_nodes));
}

std::string measured_where(const Profile& profile) {
  return profile.link_way.empty() ? "measured with the profile"
                                  : fmt::format("measured with the profile, where {}", profile.link_way);
}

// Says where the link's figures come from.
std::string origin(const PlanningOptions& planning, const Profile& profile) {
  const bool speed = planning.link_bytes_per_s >= 0, latency = planning.link_latency_s >= 0;
  if (speed && latency) return "as given";
  const std::string rest = !planning.cluster_file.empty() ? "of " + planning.cluster_file
                           : !profile.link.is_free()      ? measured_where(profile)
                                                          : "the profile has none";
  if (!speed && !latency) return rest;
  return fmt::format("{} as given; else {}", speed ? "bandwidth" : "latency", rest);
}

// With a memory limit, equal devices are listed, as many as can be used.
Cluster cluster_of(const PlanningOptions& planning, Cluster cluster, int devices) {
  for (Link* link : {&cluster.within_node, &cluster.between_nodes}) {
    if (planning.link_bytes_per_s >= 0) link->bytes_per_s = planning.link_bytes_per_s;
    if (planning.link_latency_s >= 0) link->latency_s = planning.link_latency_s;
  }
  if (cluster.devices.empty() && planning.memory_bytes > 0) cluster.devices.resize(size_t(devices));
  if (planning.memory_bytes >= 0)
    for (Device& device : cluster.devices) device.memory_bytes = planning.memory_bytes;
  return cluster;
}

int default_stages(const Replicas& replicas, const std::vector<std::string>& cuts, int chunks,
                   const Cluster& cluster, int ranks) {
  if (!replicas.of_stage.empty()) return int(replicas.of_stage.size());
  if (!cuts.empty()) return (int(cuts.size()) + chunks) / chunks;  // rounded up
  return cluster.devices.empty() ? ranks : int(cluster.devices.size());
}

// Returns one more than the last device that a given plan names.
int devices_of(const Plan& plan) {
  int most = 0;
  for (int rank = 0; rank < plan.ranks(); ++rank) most = std::max(most, plan.device_of(rank) + 1);
  return most;
}

// --stages counts devices where a rank has several stages.
void check_stages(const Plan& plan, const PlanningOptions& planning) {
  const int stages = int(plan.stages.size()), has = has_several_stages_a_rank(plan) ? plan.ranks() : stages;
  if (planning.chunks > 0 && planning.chunks * plan.ranks() != stages)
    throw Error(fmt::format("{} is a plan of {} on {}, but --chunks {} is asked for", planning.plan_file,
                            counted(stages, "stage"), counted(plan.ranks(), "rank"), planning.chunks),
                "leave out --chunks, or plan again", ExitCode::usage);
  if (planning.stages == 0 || planning.stages == has || (planning.at_most && planning.stages > has)) return;
  throw Error(fmt::format("{} is a plan of {}, but --stages {} is asked for", planning.plan_file,
                          counted(has, "stage"), planning.stages),
              "leave out --stages, or plan again", ExitCode::usage);
}

void check_devices(const Plan& plan, const Cluster& cluster) {
  if (const int devices = devices_of(plan); !cluster.devices.empty() && devices > int(cluster.devices.size()))
    throw Error(fmt::format("the plan uses device {}, but the cluster has only {}", devices - 1,
                            cluster.devices.size()),
                "plan again for this cluster");
}

void refuse_ranks(const std::string& what, int has, int ranks) {
  if (has == ranks) return;
  throw Error(
      fmt::format("{} is for {}, but the job has {}", what, counted(has, "rank"), ranks),
      fmt::format("start it with mpirun -n {0} or --local {0}, or plan for {1}", has, counted(ranks, "rank")),
      ExitCode::usage);
}

// What is wrong with the file itself is told once there is a profile, which knows the names of nodes.
void check_ranks_of_file(const std::string& text, const std::string& file, int ranks) {
  std::optional<Plan> plan;
  try {
    plan = plan_from_json(text, file);
  } catch (const Error&) {
    return;
  }
  if (!plan->stages.empty()) check_ranks(*plan, ranks);
}

int chunks_of(const PlanningOptions& planning, const Policy& policy) {
  const int chunks = planning.chunks > 0 ? planning.chunks : default_chunks(policy.placement);
  check_chunks(policy.placement, chunks, policy.name);
  return chunks;
}

// What an order is searched for.
void check_order(const PlanningOptions& planning, const std::string& schedule) {
  if (schedule != planned_order) {
    if (!planning.in_flight.empty())
      throw Error("--in-flight limits the orders of --schedule auto, but the schedule is " + schedule,
                  "leave it out, or give --schedule auto", ExitCode::usage);
    return;
  }
  if (planning.chunks > 1 || !parse_replicas(planning.replicas).off() ||
      method(planning.method) == Method::data_parallel)
    throw Error(
        "--schedule auto chooses one or two stages a rank without replicas, but --chunks or replicas were "
        "asked "
        "for",
        "leave them out (--chunks 1 keeps one stage a rank), or choose a schedule by its name",
        ExitCode::usage);
}

ScheduleChoice choice_of(const PlanningOptions& planning, const std::string& schedule) {
  if (schedule != planned_order && !is_training_policy(schedule)) return {};  // a file
  return {
      .name = schedule, .in_flight = parse_in_flight(planning.in_flight), .two_stages = planning.chunks == 0};
}

}  // namespace

// Where a cluster or cuts say how many ranks there are, the planner checks the rest.
void check_schedule(const PlanningOptions& planning, const std::string& schedule, int microbatches,
                    int ranks) {
  check_order(planning, schedule);
  const bool known = is_training_policy(schedule) || schedule == planned_order;
  if (!known || !planning.plan_file.empty()) return;
  const Policy asked = choice_of(planning, schedule).policy();
  PlanOptions options{.stages = planning.stages > 0 ? planning.stages : ranks,
                      .chunks = chunks_of(planning, asked),
                      .replicas = parse_replicas(planning.replicas),
                      .microbatches = microbatches};
  if (planning.cluster_file.empty() && planning.cuts.empty()) check_policy(asked, options);
}

void check_ranks(const Plan& plan, int ranks) { refuse_ranks("the plan", plan.ranks(), ranks); }

void check_ranks(const PlanningOptions& planning, const GivenFiles& given, int ranks) {
  if (!planning.plan_file.empty()) return check_ranks_of_file(given.plan, planning.plan_file, ranks);
  const Replicas replicas = parse_replicas(planning.replicas);
  const bool fewer = planning.at_most || replicas.automatic;
  const std::vector<int>& of_stage = replicas.of_stage;
  if (!of_stage.empty())
    refuse_ranks("--replicas " + planning.replicas, std::accumulate(of_stage.begin(), of_stage.end(), 0),
                 ranks);
  else if (planning.stages > 0 && !(fewer && planning.stages >= ranks))
    refuse_ranks(fmt::format("--stages {}", planning.stages), planning.stages, ranks);
}

PlanTask plan_task(const PlanningOptions& planning, const GivenFiles& given, const Profile& profile,
                   const ScheduleOptions& asked, int microbatches, int ranks) {
  const std::string& schedule = asked.schedule;
  check_order(planning, schedule);
  check(asked);
  PlanTask task{
      .method = method(planning.method), .schedule = schedule, .choice = choice_of(planning, schedule)};
  task.choice.predict = prediction_method(asked.predict);
  task.policy = task.choice.policy();
  task.choice.recomputation = parse_recomputation(given.recompute);
  PlanOptions& options = task.options;
  options.objective = objective(planning.objective);
  options.steps = parse_overlap(planning.overlap_steps);
  options.at_most = planning.at_most;
  options.microbatches = microbatches;
  options.max_states = planning.max_states;
  options.recompute = task.choice.recomputation.automatic;
  options.replicas = parse_replicas(planning.replicas);
  options.shard_optimiser = planning.shard_optimiser == "on";
  // 1. Find the number of stages.
  if (planning.plan_file.empty()) options.chunks = chunks_of(planning, task.policy);
  const Cluster cluster = planning.cluster_file.empty()
                              ? one_link(profile.link)
                              : cluster_from_json(given.cluster, planning.cluster_file);
  if (given.cuts.empty()) options.cuts = parse_names(planning.cuts);
  options.stages = planning.stages > 0
                       ? planning.stages
                       : default_stages(options.replicas, options.cuts, options.chunks, cluster, ranks);
  if (!given.cuts.empty()) {
    const std::vector<CutLine> lines = parse_cuts(given.cuts, planning.cuts);
    options.cuts =
        choose_cut_line(lines, profile, options.stages * options.chunks, options.at_most).last_nodes;
  }
  // 2. Find the devices.
  if (!planning.plan_file.empty()) {
    task.given = plan_from_json(given.plan, planning.plan_file, profile);
    validate(*task.given, profile);
    check_stages(*task.given, planning);
  }
  options.cluster = cluster_of(planning, cluster, task.given ? devices_of(*task.given) : options.devices());
  if (task.given) check_devices(*task.given, options.cluster);
  if (!task.given && task.method == Method::antichain) check_kinds(options, profile);
  if (schedule == planned_order && of_loads(options.objective))
    throw Error("--schedule auto searches an order for the step, but the objective is one of loads",
                "choose a schedule by its name, or leave out --objective", ExitCode::usage);
  if (options.cluster.has_kinds()) task.choice.two_stages = false;
  // Only ranks in host memory can share out the optimiser's state.
  task.may_shard = planning.shard_optimiser == "auto" && options.replicas.automatic &&
                   !task.policy.asynchronous() && options.cluster.limits_memory() && profile.link_way.empty();
  if (profile.ids_are_names && task.policy.halves)
    task.backward_split = fmt::format(
        "Backward times of PipeDream's profile: {:.4g} % for the weight half, where there is one\n",
        planning.backward_split.value_or(default_weight_share) * 100);
  task.link = fmt::format("{} ({})", words(options.cluster), origin(planning, profile));
  return task;
}

Plan plan_here(const Profile& profile, const PlanTask& task) {
  if (!task.may_shard) return task.choice.plan(profile, task.options, task.method);
  std::optional<Plan> whole;
  try {
    whole = task.choice.plan(profile, task.options, task.method);
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input) throw;
  }
  PlanOptions sharding = task.options;
  sharding.shard_optimiser = true;
  const Plan sharded = task.choice.plan(profile, sharding, task.method);
  return whole && whole->objective_s() < sharded.objective_s() ? *whole : sharded;
}

Plan obtain_plan(const GivenFiles& given, const Profile& profile, const PlanTask& task) {
  if (!task.given) return plan_here(profile, task);
  std::optional<Schedule> written;
  if (!is_training_policy(task.schedule)) written = obtain_schedule(given, task, profile, *task.given);
  return task.choice.judge(profile, *task.given, task.options, written);
}

}  // namespace antichain
