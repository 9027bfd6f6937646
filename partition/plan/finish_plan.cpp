#include "partition/plan/finish_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "framework/error.h"
#include "partition/plan/plan_price.h"

namespace antichain {

bool bars_nodes(const Profile& profile) { return std::ranges::any_of(profile.nodes, &ProfileNode::barred); }

namespace {

[[noreturn]] void refuse(const std::string& sentence, const std::string& hint) {
  throw Error(sentence, hint, ExitCode::usage);
}

void check_bars(const Profile& profile, const std::string& name) {
  double all_s = 0;
  for (const ProfileNode& node : profile.nodes) all_s += node.cost.compute_s();
  if (bars_nodes(profile) && all_s * 1e9 >= double(barred_ns))
    throw Error(
        fmt::format("{} bars nodes, but its nodes take {} s together, which is more than planning can "
                    "tell from a node that is barred",
                    name, all_s),
        "give times of smaller micro-batches");
}

// A kind's profile has times of the same nodes.
void check_profile(const KindProfile& kind, const Profile& profile) {
  const auto same = [](const ProfileNode& a, const ProfileNode& b) { return a.name == b.name; };
  if (!std::ranges::equal(kind.profile->nodes, profile.nodes, same))
    throw Error(
        fmt::format("{} is not a profile of the network that is planned, {}: its nodes have other names",
                    kind.file, profile.model),
        "profile the same network on each kind of device");
}

}  // namespace

void check_kinds(const PlanOptions& options, const Profile& profile) {
  check_bars(profile, "the profile of " + profile.model);
  for (const KindProfile& kind : options.cluster.profiles)
    check_profile(kind, profile), check_bars(*kind.profile, kind.file);
  const bool kinds = options.cluster.has_kinds();
  constexpr std::string_view what = "the cluster has a profile for each kind of device";
  if (kinds && options.chunks > 1)
    refuse(fmt::format("{}, but a schedule of {} stages a rank has ranks in a fixed order", what,
                       options.chunks),
           "take a schedule of one stage a rank");
  if (!of_loads(options.objective)) return;
  const Link &a = options.cluster.within_node, &b = options.cluster.between_nodes;
  if (!options.replicas.off() || options.recompute || options.chunks > 1)
    refuse(fmt::format("the objective {} is of stages that have one device each and recompute nothing",
                       name_of(options.objective)),
           "leave out --replicas and --recompute, and take a schedule of one stage a rank");
  if (a.bytes_per_s != b.bytes_per_s || a.latency_s != b.latency_s)
    refuse(fmt::format("the objective {} knows one link, but the cluster's differ within and between nodes",
                       name_of(options.objective)),
           "give one with --link-bytes-per-s and --link-latency-s");
}

bool transfers_count(const PlanOptions& options) {
  return options.objective != Objective::compute && !of_loads(options.objective);
}

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
  check_kinds(options, profile);
}

namespace {

using Weights = std::vector<double>;  // a node

// Returns how much of the weights the device can do in a nanosecond, of the nodes that it is best at.
double rate(const Weights& weights, const Weights& times) {
  double most = 0;
  for (size_t n = 0; n < weights.size(); ++n)
    if (weights[n] > 0)
      most = times[n] > 0 ? std::max(most, weights[n] / times[n]) : std::numeric_limits<double>::infinity();
  return most;
}

// Kinds of devices, by profile and speed: how many there are, and their times.
using Kinds = std::map<std::pair<int, double>, std::pair<int, Weights>>;

// Returns the weights of which the bound is largest. A device's time has a price by its kind, and each node
// the weight of the cheapest device. What kind has more than its share of this work becomes dearer.
Weights best_weights(const Kinds& kinds) {
  constexpr int rounds = 300;
  std::vector<double> price(kinds.size(), 1), load(kinds.size());
  Weights best, weights(kinds.begin()->second.second.size());
  double most = 0;
  for (int round = 1; round <= rounds; ++round) {
    std::ranges::fill(load, 0);
    for (size_t n = 0; n < weights.size(); ++n) {
      size_t k = 0, cheapest = 0;
      weights[n] = std::numeric_limits<double>::infinity();
      for (const auto& [kind, its] : kinds) {
        if (const double cost = price[k] * its.second[n]; cost < weights[n]) weights[n] = cost, cheapest = k;
        ++k;
      }
      load[cheapest] += weights[n] / price[cheapest];
    }
    double prices = 0;
    size_t k = 0;
    for (const auto& [kind, its] : kinds) {
      prices += its.first * price[k];
      load[k++] /= its.first;
    }
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (all / prices > most) most = all / prices, best = weights;
    const double share = std::ranges::max(load), step = 0.5 / std::sqrt(round);
    for (k = 0; k < price.size() && share > 0; ++k) price[k] *= std::exp(step * (load[k] / share - 0.5));
  }
  return best;
}

// Every node gets a weight. All devices together finish at most so much weight in a nanosecond, so no plan is
// faster than the sum of all weights divided by that. This holds for any weights. Tried are the times of each
// kind, the least time of each node, its time on all devices at once, and the best weights; the largest bound
// counts.
int64_t bound_of_kinds_ns(const Profile& profile, const PlanOptions& options, int devices) {
  const Cluster& cluster = options.cluster;
  Kinds kinds;
  for (const Device& device : cluster.devices) {
    auto& [count, times] = kinds[{device.profile, device.speed}];
    if (++count > 1) continue;
    for (size_t n = 0; n < profile.nodes.size(); ++n)
      if (profile.nodes[n].role != Role::input)
        times.push_back(double(work_ns(cluster.profile(device.profile, profile), int(n), device.speed)));
  }
  Weights least = kinds.begin()->second.second, at_once(least.size(), 0);
  std::vector<Weights> all;
  for (const auto& [kind, its] : kinds) {
    all.push_back(its.second);
    for (size_t n = 0; n < least.size(); ++n) {
      least[n] = std::min(least[n], its.second[n]);
      at_once[n] += its.first / its.second[n];
    }
  }
  for (double& weight : at_once) weight = 1 / weight;
  all.push_back(least), all.push_back(at_once), all.push_back(best_weights(kinds));
  double bound = 0;
  for (const Weights& weights : all) {
    std::vector<double> rates;
    for (const auto& [kind, its] : kinds)
      rates.insert(rates.end(), size_t(its.first), rate(weights, its.second));
    std::ranges::sort(rates, std::greater<>());
    rates.resize(std::min(rates.size(), size_t(devices)));
    const double all_s = std::accumulate(weights.begin(), weights.end(), 0.0);
    bound = std::max(bound, all_s / std::accumulate(rates.begin(), rates.end(), 0.0));
  }
  const double largest = options.replicas.off() ? *std::ranges::max_element(least) : 0;
  return int64_t(std::max(largest, bound * (1 - 1e-12)));
}

}  // namespace

int64_t bound_without_search_ns(const Profile& profile, const PlanOptions& options, int devices) {
  const Cluster& cluster = options.cluster;
  if (cluster.has_kinds()) return bound_of_kinds_ns(profile, options, devices);
  std::vector<double> speeds(size_t(devices), 1);
  if (!cluster.devices.empty()) {
    speeds.clear();
    for (const Device& device : cluster.devices) speeds.push_back(device.speed);
    std::sort(speeds.begin(), speeds.end(), std::greater<>());
    speeds.resize(std::min(speeds.size(), size_t(devices)));
  }
  int64_t total = 0, largest = 0, nodes = 0;
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    if (profile.nodes[n].role == Role::input) continue;
    ++nodes;
    total += work_ns(profile, int(n), 1);
    largest = std::max(largest, work_ns(profile, int(n), speeds.front()));
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
    if (of_loads(options.objective))
      bottleneck = std::max(bottleneck, load_ns(options.objective, prices[s].stage_ns, prices[s].sent_ns));
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
