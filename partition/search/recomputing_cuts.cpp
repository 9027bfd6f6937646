#include "partition/search/recomputing_cuts.h"

#include <algorithm>

#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

constexpr int most_states = 1500;  // pairs of which are compared
constexpr int64_t never = std::numeric_limits<int64_t>::max();

}  // namespace

StageSeat seat_of(const Move& move) { return {move.in_flight, move.replicas, move.memory_bytes, move.speed}; }

RecomputingCuts::RecomputingCuts(const AntichainDag& dag, const PlacementDag& placements,
                                 const Profile& profile, const PlanOptions& options)
    : dag_(dag),
      placements_(placements),
      prices_(dag, placements, profile, options, Goal::time),
      fitter_(profile) {}

bool RecomputingCuts::possible(const AntichainDag& dag) { return dag.states() <= most_states; }

// This is the smallest of the largest costs along a path.
std::optional<RecomputingCuts::Found> RecomputingCuts::least(int64_t below, const Cost& at_least,
                                                             const Cost& cost) {
  struct Way {
    int64_t most = never;
    int from = -1;
    const Move* by = nullptr;
  };
  struct Candidate {
    int64_t most = 0;
    int from = 0;
    const Move* by = nullptr;
  };
  const int states = dag_.states();
  std::vector<std::vector<Way>> ways(size_t(placements_.size()), std::vector<Way>(size_t(states)));
  ways[0][size_t(dag_.empty())].most = 0;
  std::vector<Candidate> candidates;
  const Way* best = nullptr;
  for (int p = 1; p < placements_.size(); ++p)
    for (int to = placements_.complete(p) ? dag_.full() : 1; to < states; ++to) {
      Way& way = ways[size_t(p)][size_t(to)];
      candidates.clear();
      for (const Move& move : placements_.into(p))
        for (int from = 0; from < to; ++from) {
          const int64_t before = ways[size_t(move.from)][size_t(from)].most;
          if (before >= below || !dag_.inside(from, to)) continue;
          const int64_t most = std::max(before, at_least(from, to, move));
          if (most < below) candidates.push_back({most, from, &move});
        }
      std::ranges::stable_sort(candidates, {}, &Candidate::most);
      for (const Candidate& next : candidates) {
        if (next.most >= std::min(way.most, below)) break;
        const int64_t most = std::max(next.most, cost(next.from, to, *next.by));
        if (most < std::min(way.most, below)) way = {most, next.from, next.by};
      }
      if (placements_.complete(p) && way.by && (!best || way.most < best->most)) best = &way;
    }
  if (!best) return std::nullopt;
  Found found{.most = best->most};
  found.cuts.states = {dag_.full()};
  for (const Way* way = best; way->by; way = &ways[size_t(way->by->from)][size_t(way->from)]) {
    found.cuts.states.push_back(way->from);
    found.cuts.moves.push_back(way->by);
  }
  std::ranges::reverse(found.cuts.states);
  std::ranges::reverse(found.cuts.moves);
  return found;
}

std::optional<RecomputingCuts::Found> RecomputingCuts::least_time(int64_t below) {
  const Cost without = [&](int from, int to, const Move& move) {
    return std::max(prices_.stage_ns(from, to, move), prices_.boundary_ns(from, move));
  };
  return least(below, without, [&](int from, int to, const Move& move) {
    const std::optional<RecomputeChoice> choice = fitter_.fit(dag_.between(from, to), seat_of(move));
    if (!choice) return never;
    exact_ &= choice->exact;
    return prices_.stage_ns(from, to, move, choice->ns);
  });
}

std::optional<RecomputingCuts::Found> RecomputingCuts::least_memory(int64_t below) {
  const Cost anyhow = [&](int from, int to, const Move& move) {
    return fitter_.other_bytes(dag_.between(from, to), seat_of(move));
  };
  return least(below, anyhow, [&](int from, int to, const Move& move) {
    return fitter_.least_bytes(dag_.between(from, to), seat_of(move));
  });
}

}  // namespace antichain
