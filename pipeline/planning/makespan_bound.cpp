#include "pipeline/planning/makespan_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "pipeline/planning/round_trip_bound.h"

namespace antichain {
namespace {

constexpr double bound_rounding = 1e-12;  // sums of thousands of doubles, in another order, differ by less

// Returns whose times the devices take that a plan may use, and their speeds.
std::set<std::pair<int, double>> kinds(const Cluster& cluster) {
  std::set<std::pair<int, double>> found;
  for (const Device& device : cluster.devices) found.emplace(device.profile, device.speed);
  if (found.empty()) found.emplace(-1, 1);
  return found;
}

// Returns how much more than the times themselves the planner's whole nanoseconds can be, on any device. Both
// count updates.
double rounded_up_ns(const Profile& own, const PlanOptions& options) {
  double most = 0;
  for (const auto& [kind, its_speed] : kinds(options.cluster)) {
    const Profile profile = with_updates(options.cluster.profile(kind, own), options.microbatches);
    const double speed = its_speed;
    double sum = 0;
    const auto add = [&](const NodeCost& cost) {
      sum += std::max(0.0, double(work_ns(cost, speed)) - cost.compute_s() * 1e9 / speed);
    };
    for (const ProfileNode& node : profile.nodes) {
      if (node.role == Role::input) continue;
      add(node.cost);
      if (options.recompute) add({.forward_s = node.cost.forward_s});
    }
    most = std::max(most, sum);
  }
  // A stage has its share of its work, and of each node's all-reduce.
  return most + (options.replicas.off() ? 0 : 1 + 0.5 * double(own.nodes.size()));
}

// Replicas take turns whatever their speed. Of M micro-batches the slowest does ⌊M / r⌋ or ⌈M / r⌉, and M / r
// only where r divides M. The share is 1 where a crew is as fast as its slowest because all are.
double share_of_slowest(const PlanOptions& options) {
  const std::vector<Device>& devices = options.cluster.devices;
  const auto differs = [&](const Device& device) { return device.speed != devices.front().speed; };
  if (options.replicas.off() || std::ranges::none_of(devices, differs)) return 1;
  const int M = options.microbatches, most = std::min(M, options.devices());
  double share = 1;
  for (int r = 2; r <= most; ++r) share = std::min(share, double(M / r) * r / M);
  return share;
}

int largest_crew(const PlanOptions& options) {
  if (options.replicas.off()) return 1;
  const std::vector<int>& given = options.replicas.of_stage;
  return given.empty() ? options.stages : *std::max_element(given.begin(), given.end());
}

// Returns M times the smallest bottleneck, in seconds.
double load_bound_s(const Profile& profile, const PlanOptions& options, int64_t bottleneck_ns,
                    double least_overhead_s) {
  const int M = options.microbatches;
  const double steady_ns =
      (double(bottleneck_ns) - rounded_up_ns(profile, options)) * share_of_slowest(options);
  const double overheads_s = std::floor(M / largest_crew(options)) * 2 * least_overhead_s;
  return (M * std::max(0.0, steady_ns) / 1e9 + overheads_s) * (1 - bound_rounding);
}

}  // namespace

Profile with_updates(const Profile& profile, int microbatches) {
  Profile with = profile;
  for (ProfileNode& node : with.nodes) node.cost.backward_weight_s += node.cost.update_s / microbatches;
  return with;
}

std::vector<KindProfile> with_updates(const std::vector<KindProfile>& kinds, int microbatches) {
  return changed(kinds, [&](const Profile& profile) { return with_updates(profile, microbatches); });
}

Profile least_times(const Profile& own, const Cluster& cluster) {
  const std::set<std::pair<int, double>> all = kinds(cluster);
  Profile least = own;
  least.overhead_s = std::numeric_limits<double>::infinity();
  for (const auto& [kind, speed] : all)
    least.overhead_s = std::min(least.overhead_s, cluster.profile(kind, own).overhead_s / speed);
  for (size_t n = 0; n < own.nodes.size(); ++n)
    for (double NodeCost::*const time :
         {&NodeCost::forward_s, &NodeCost::backward_input_s, &NodeCost::backward_weight_s,
          &NodeCost::backward_parted_s, &NodeCost::update_s}) {
      std::optional<double> found;
      for (const auto& [kind, speed] : all)
        if (const ProfileNode& node = cluster.profile(kind, own).nodes[n]; !node.barred)
          found = std::min(found.value_or(std::numeric_limits<double>::infinity()), node.cost.*time / speed);
      least.nodes[n].cost.*time = found.value_or(0);  // where all bar it, there is no plan
    }
  return least;
}

LongestWays longest_ways(const Profile& profile, bool halves) {
  const std::vector<double> none(profile.nodes.size(), 0);
  LongestWays ways = {none, none, none};
  const auto gradient_s = [&](const ProfileNode& node) {
    return halves ? node.cost.backward_input_s : node.cost.backward_s();
  };
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    const ProfileNode& node = profile.nodes[n];
    if (node.role == Role::input) continue;
    double before_s = 0, after_s = node.cost.update_s + (halves ? node.cost.backward_weight_s : 0);
    for (int input : node.inputs) {
      before_s = std::max(before_s, ways.there_s[size_t(input)]);
      if (profile.nodes[size_t(input)].needs_gradient)
        after_s = std::max(after_s, ways.back_s[size_t(input)]);
    }
    ways.there_s[n] = before_s + node.cost.forward_s;
    ways.back_s[n] = gradient_s(node) + after_s;
  }
  for (size_t n = profile.nodes.size(); n-- > 0;) {
    const ProfileNode& node = profile.nodes[n];
    const double trip_s = node.cost.forward_s + ways.trip_s[n] + gradient_s(node);
    for (const int input : node.inputs)
      if (profile.nodes[size_t(input)].needs_gradient)
        ways.trip_s[size_t(input)] = std::max(ways.trip_s[size_t(input)], trip_s);
  }
  return ways;
}

double node_bound_s(const Profile& profile, int microbatches, bool halves, Objective objective) {
  const LongestWays ways = longest_ways(profile, halves);
  const double M = microbatches;
  double bound_s = 0;
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    if (profile.nodes[n].role == Role::input) continue;
    const NodeCost& cost = profile.nodes[n].cost;
    const double f = cost.forward_s, b = cost.backward_s(), trip = ways.trip_s[n];
    const double i = halves ? cost.backward_input_s : b;
    const double span_s = std::max({M * (f + b), f + trip + M * b, M * f + trip + b}) + cost.update_s;
    if (objective == Objective::period) {
      bound_s = std::max(bound_s, span_s);
      continue;
    }
    const double last_s = std::max({M * (f + i), f + trip + M * i, M * f + trip + i});
    bound_s = std::max(bound_s, ways.there_s[n] - f + std::max(span_s, last_s - i + ways.back_s[n]));
  }
  return bound_s + 2 * profile.overhead_s;
}

double pace_bound_s(const Profile& profile, const PlanOptions& options, bool halves,
                    const AntichainSearch* made) {
  const bool several = options.chunks > 1;
  if (!made && !several) {
    PlanOptions free = options;
    free.objective = Objective::compute;
    free.cluster.profiles = with_updates(free.cluster.profiles, options.microbatches);
    for (Device& device : free.cluster.devices) device.memory_bytes = 0;
    Profile with = with_updates(profile, options.microbatches);
    for (ProfileNode& node : with.nodes) node.cost.param_bytes = 0;  // all-reduces may hide behind backwards
    AntichainSearch search(with, free);
    search.best();
    return pace_bound_s(profile, options, halves, &search);
  }
  const int64_t bottleneck_ns =
      several ? bound_without_search_ns(with_updates(profile, options.microbatches), options, options.stages)
              : made->lower_bound_ns();
  Profile least = least_times(profile, options.cluster);
  double bound_s = load_bound_s(profile, options, bottleneck_ns, least.overhead_s);
  if (!several && options.replicas.off() && made->whole())
    bound_s = round_trip_bound_s(least, options, *made->whole(), bound_s);
  const bool alone = options.replicas.off();  // otherwise a replica of the node's stage may do few
  if (options.objective == Objective::period && !alone) return bound_s;
  if (options.shard_optimiser)  // of as many replicas as there may be
    for (ProfileNode& node : least.nodes) node.cost.update_s /= options.devices();
  const double node_s = node_bound_s(least, alone ? options.microbatches : 1, halves, options.objective);
  return std::max(node_s * (1 - bound_rounding), bound_s);
}

double but_for_rounding(double bound_s, double step_s) {
  ANTICHAIN_CHECK(bound_s <= step_s * (1 + 1e-9), "a step is no shorter than its bound");
  return bound_s >= step_s * (1 - 2 * bound_rounding) ? step_s : bound_s;
}

}  // namespace antichain
