#include "partition/search/recomputing_cuts.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

constexpr size_t few_places = 32, most_places_by_time = 150, most_places_by_memory = 64;
constexpr double rounding_of_speeds = 1e-3;  // of nanoseconds that are rounded at each node

// Returns, per state, the least that its down-set takes on any of the devices, at a speed of 1.
std::vector<int64_t> least_work_ns(const AntichainDag& dag, const Profile& profile, const Cluster& cluster) {
  std::set<int> kinds;
  for (const Device& device : cluster.devices) kinds.insert(device.profile);
  if (kinds.empty()) kinds.insert(-1);
  std::vector<int64_t> of_node;
  for (const std::vector<int>& members : dag.graph().nodes) {
    int64_t& sum = of_node.emplace_back(0);
    for (const int n : members) {
      int64_t least = barred_ns;
      for (const int kind : kinds) least = std::min(least, work_ns(cluster.profile(kind, profile), n, 1));
      sum += least;
    }
  }
  return dag.sums(of_node);
}

}  // namespace

StageSeat seat_of(const Move& move) {
  return {move.in_flight, move.replicas, move.memory_bytes, move.speed, move.profile};
}

RecomputingCuts::RecomputingCuts(const AntichainDag& dag, const PlacementDag& placements,
                                 const Profile& profile, const PlanOptions& options,
                                 const StageFitter& fitter)
    : dag_(dag),
      placements_(placements),
      prices_(dag, placements, profile, options, Goal::time),
      least_work_ns_(least_work_ns(dag, profile, options.cluster)),
      fitter_(fitter) {}

// Returns states at which few bytes cross, both ends among them, ascending.
std::vector<int> RecomputingCuts::narrow(size_t most) const {
  std::vector<int> states(static_cast<size_t>(dag_.states()));
  std::iota(states.begin(), states.end(), 0);
  if (states.size() <= most) return states;
  std::ranges::stable_sort(states, {}, [&](int state) {
    return state == dag_.empty() || state == dag_.full() ? -1 : dag_.crossing_bytes(state);
  });
  states.resize(most);
  std::ranges::sort(states);
  return states;
}

std::optional<FoundCuts> RecomputingCuts::least(int64_t below, size_t most_states, const MayEnd& may_end,
                                                const Cost& at_least, const Cost& cost) {
  // One stage has them all.
  exact_ &= size_t(dag_.states()) <= most_states || placements_.moves().size() == 1;
  const auto least_of = [&](const std::vector<int>& states, int64_t limit) {
    const auto may = [&](int placement, int state) { return may_end(placement, state, limit); };
    return least_path(dag_, placements_, states, 0, limit, false, may, at_least, cost);
  };
  std::optional<FoundCuts> found = least_of(narrow(few_places), below);
  if (size_t(dag_.states()) <= few_places) return found;
  std::optional<FoundCuts> better = least_of(narrow(most_states), found ? found->most : below);
  return better ? better : found;
}

std::optional<FoundCuts> RecomputingCuts::least_time(int64_t below) {
  double all = 0;
  for (int p = 0; p < placements_.size(); ++p)
    if (placements_.complete(p)) all = std::max(all, placements_.capacity(p));
  // The devices that are left have to do the rest.
  const MayEnd may_end = [&](int placement, int state, int64_t limit) {
    const double rest = double(least_work_ns_.back() - least_work_ns_[size_t(state)]);
    return rest * (1 - rounding_of_speeds) <= (all - placements_.capacity(placement)) * double(limit);
  };
  const Cost without = [&](int from, int to, const Move& move) {
    return std::max(prices_.stage_ns(from, to, move), prices_.boundary_ns(from, move));
  };
  const Cost with = [&](int from, int to, const Move& move) {
    const RecomputeFind& found = fitter_.fit(dag_.between(from, to), seat_of(move));
    exact_ &= found.exact;
    return found.choice ? prices_.stage_ns(from, to, move, found.choice->ns) : forbidden_cost;
  };
  return least(below, most_places_by_time, may_end, without, with);
}

std::optional<FoundCuts> RecomputingCuts::least_memory(int64_t below) {
  const Cost anyhow = [&](int from, int to, const Move& move) {
    return fitter_.other_bytes(dag_.between(from, to), seat_of(move));
  };
  const Cost least_bytes = [&](int from, int to, const Move& move) {
    const StageFitter::Least least = fitter_.least(dag_.between(from, to), seat_of(move));
    exact_ &= least.exact;
    return least.bytes;
  };
  return least(
      below, most_places_by_memory, [](int, int, int64_t) { return true; }, anyhow, least_bytes);
}

}  // namespace antichain
