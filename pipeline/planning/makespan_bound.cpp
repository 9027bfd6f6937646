#include "pipeline/planning/makespan_bound.h"

#include <algorithm>
#include <cmath>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "pipeline/planning/round_trip_bound.h"

namespace antichain {
namespace {

constexpr double bound_rounding = 1e-12;  // sums of thousands of doubles, in another order, differ by less

// Returns the speeds of the devices that a plan may use. All are 1 when the cluster names none.
std::vector<double> speeds(const PlanOptions& options) {
  std::vector<double> speeds;
  for (const Device& device : options.cluster.devices) speeds.push_back(device.speed);
  if (speeds.empty()) speeds.push_back(1);
  std::sort(speeds.begin(), speeds.end());
  return speeds;
}

// Returns how much more than the times themselves the planner's whole nanoseconds can be, at any of the
// speeds.
double rounded_up_ns(const Profile& profile, const PlanOptions& options, const std::vector<double>& speeds) {
  double most = 0;
  for (double speed : speeds) {
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
  return most + (options.replicas.off() ? 0 : 1 + 0.5 * double(profile.nodes.size()));
}

// Replicas take turns whatever their speed. Of M micro-batches the slowest does ⌊M / r⌋ or ⌈M / r⌉, and M / r
// only where r divides M. The share is 1 where a crew is as fast as its slowest because all are.
double share_of_slowest(const PlanOptions& options, const std::vector<double>& speeds) {
  if (options.replicas.off() || speeds.front() == speeds.back()) return 1;
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
double load_bound_s(const Profile& profile, const PlanOptions& options, int64_t bottleneck_ns) {
  const std::vector<double> all = speeds(options);
  const int M = options.microbatches;
  const double steady_ns = (double(bottleneck_ns) - rounded_up_ns(with_updates(profile, M), options, all)) *
                           share_of_slowest(options, all);
  const double overheads_s = std::floor(M / largest_crew(options)) * 2 * profile.overhead_s / all.back();
  return (M * std::max(0.0, steady_ns) / 1e9 + overheads_s) * (1 - bound_rounding);
}

}  // namespace

Profile with_updates(const Profile& profile, int microbatches) {
  Profile with = profile;
  for (ProfileNode& node : with.nodes) node.cost.backward_weight_s += node.cost.update_s / microbatches;
  return with;
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

double node_bound_s(const Profile& profile, int microbatches, double fastest, bool halves,
                    Objective objective) {
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
  return (bound_s + 2 * profile.overhead_s) / fastest;
}

double pace_bound_s(const Profile& profile, const PlanOptions& options, bool halves,
                    const AntichainSearch* made) {
  const bool several = options.chunks > 1;
  if (!made && !several) {
    PlanOptions free = options;
    free.objective = Objective::compute;
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
  double bound_s = load_bound_s(profile, options, bottleneck_ns);
  if (!several && options.replicas.off() && made->whole())
    bound_s = round_trip_bound_s(profile, options, *made->whole(), bound_s);
  const bool alone = options.replicas.off();  // otherwise a replica of the node's stage may do few
  if (options.objective == Objective::period && !alone) return bound_s;
  Profile shared_out = profile;
  if (options.shard_optimiser)  // of as many replicas as there may be
    for (ProfileNode& node : shared_out.nodes) node.cost.update_s /= options.devices();
  const double node_s = node_bound_s(shared_out, alone ? options.microbatches : 1,
                                     options.cluster.fastest_speed(), halves, options.objective);
  return std::max(node_s * (1 - bound_rounding), bound_s);
}

double but_for_rounding(double bound_s, double step_s) {
  ANTICHAIN_CHECK(bound_s <= step_s * (1 + 1e-9), "a step is no shorter than its bound");
  return bound_s >= step_s * (1 - 2 * bound_rounding) ? step_s : bound_s;
}

}  // namespace antichain
