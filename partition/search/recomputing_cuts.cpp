#include "partition/search/recomputing_cuts.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

constexpr size_t few_places = 32, most_places_by_time = 150, most_places_by_memory = 64;
constexpr int64_t never = std::numeric_limits<int64_t>::max();
constexpr double rounding_of_speeds = 1e-3;  // of nanoseconds that are rounded at each node

}  // namespace

StageSeat seat_of(const Move& move) { return {move.in_flight, move.replicas, move.memory_bytes, move.speed}; }

RecomputingCuts::RecomputingCuts(const AntichainDag& dag, const PlacementDag& placements,
                                 const Profile& profile, const PlanOptions& options,
                                 const StageFitter& fitter)
    : dag_(dag),
      placements_(placements),
      prices_(dag, placements, profile, options, Goal::time),
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

std::optional<RecomputingCuts::Found> RecomputingCuts::least(int64_t below, size_t most_states,
                                                             const MayEnd& may_end, const Cost& at_least,
                                                             const Cost& cost) {
  exact_ &= size_t(dag_.states()) <= most_states;
  std::optional<Found> found = least_of(narrow(few_places), below, may_end, at_least, cost);
  if (size_t(dag_.states()) <= few_places) return found;
  std::optional<Found> better =
      least_of(narrow(most_states), found ? found->most : below, may_end, at_least, cost);
  return better ? better : found;
}

// This is the smallest of the largest costs along a path.
std::optional<RecomputingCuts::Found> RecomputingCuts::least_of(const std::vector<int>& states, int64_t below,
                                                                const MayEnd& may_end, const Cost& at_least,
                                                                const Cost& cost) const {
  struct Way {
    int64_t most = never;
    size_t from = 0;
    const Move* by = nullptr;
  };
  std::vector<std::vector<Way>> ways(size_t(placements_.size()), std::vector<Way>(states.size()));
  ways[0][0].most = 0;
  std::vector<Way> candidates;
  const Way* best = nullptr;
  for (int p = 1; p < placements_.size(); ++p)
    for (size_t to = placements_.complete(p) ? states.size() - 1 : 1; to < states.size(); ++to) {
      if (!may_end(p, states[to], below)) continue;
      Way& way = ways[size_t(p)][to];
      candidates.clear();
      for (const Move& move : placements_.into(p))
        for (size_t from = 0; from < to; ++from) {
          const int64_t before = ways[size_t(move.from)][from].most;
          if (before >= below || !dag_.inside(states[from], states[to])) continue;
          const int64_t most = std::max(before, at_least(states[from], states[to], move));
          if (most < below) candidates.push_back({most, from, &move});
        }
      std::ranges::stable_sort(candidates, {}, &Way::most);
      for (const Way& next : candidates) {
        if (next.most >= way.most) break;
        const int64_t most = std::max(next.most, cost(states[next.from], states[to], *next.by));
        if (most < std::min(way.most, below)) way = {most, next.from, next.by};
      }
      if (placements_.complete(p) && way.by && (!best || way.most < best->most)) best = &way;
    }
  if (!best) return std::nullopt;
  Found found{.most = best->most};
  found.cuts.states = {dag_.full()};
  for (const Way* way = best; way->by; way = &ways[size_t(way->by->from)][way->from]) {
    found.cuts.states.push_back(states[way->from]);
    found.cuts.moves.push_back(way->by);
  }
  std::ranges::reverse(found.cuts.states);
  std::ranges::reverse(found.cuts.moves);
  return found;
}

std::optional<RecomputingCuts::Found> RecomputingCuts::least_time(int64_t below) {
  double all = 0;
  for (int p = 0; p < placements_.size(); ++p)
    if (placements_.complete(p)) all = std::max(all, placements_.capacity(p));
  // The devices that are left have to do the rest.
  const MayEnd may_end = [&](int placement, int state, int64_t limit) {
    const double rest = double(dag_.work_ns(dag_.full()) - dag_.work_ns(state));
    return rest * (1 - rounding_of_speeds) <= (all - placements_.capacity(placement)) * double(limit);
  };
  const Cost without = [&](int from, int to, const Move& move) {
    return std::max(prices_.stage_ns(from, to, move), prices_.boundary_ns(from, move));
  };
  const Cost with = [&](int from, int to, const Move& move) {
    const std::optional<RecomputeChoice>& choice = fitter_.fit(dag_.between(from, to), seat_of(move));
    if (!choice) return never;
    exact_ &= choice->exact;
    return prices_.stage_ns(from, to, move, choice->ns);
  };
  return least(below, most_places_by_time, may_end, without, with);
}

std::optional<RecomputingCuts::Found> RecomputingCuts::least_memory(int64_t below) {
  const Cost anyhow = [&](int from, int to, const Move& move) {
    return fitter_.other_bytes(dag_.between(from, to), seat_of(move));
  };
  const Cost least_bytes = [&](int from, int to, const Move& move) {
    return fitter_.least_bytes(dag_.between(from, to), seat_of(move));
  };
  return least(
      below, most_places_by_memory, [](int, int, int64_t) { return true; }, anyhow, least_bytes);
}

}  // namespace antichain
