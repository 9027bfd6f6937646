// The path through an antichain DAG and a placement DAG whose largest cost is smallest, where what a stage
// costs depends on both of its ends, so that pairs of states are compared.
//
// For each placement and state, pairs come by the least that they can cost, and only those that may be the
// best have their cost computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "partition/search/bottleneck.h"

namespace antichain {

constexpr int64_t forbidden_cost =
    std::numeric_limits<int64_t>::max();  // what a stage costs that is not allowed

struct FoundCuts {
  Cuts cuts;
  int64_t most = 0;  // nanoseconds of the bottleneck, or bytes of the fullest device
};

// `states` are those that stages may end at, ascending, both ends of the DAG among them. `may_end(placement,
// state)` says whether it may be part of a path below the limit; `at_least(from, to, move)` is quick, and no
// more than `cost(from, to, move)`. No path costs less than `floor`, so what is below that is as good as it.
// Where `fewer`, some devices may be left over. Returns nothing where every path has a cost of `below` or
// more.
template <class MayEnd, class AtLeast, class Cost>
std::optional<FoundCuts> least_path(const AntichainDag& dag, const PlacementDag& placements,
                                    const std::vector<int>& states, int64_t floor, int64_t below, bool fewer,
                                    const MayEnd& may_end, const AtLeast& at_least, const Cost& cost) {
  struct Way {
    int64_t most = forbidden_cost;
    size_t from = 0, of_before = 0;  // a state, and its place among those that the move's origin ends at
    const Move* by = nullptr;
  };
  struct End {
    size_t state = 0;
    Way way;
  };
  struct Candidate {
    Way way;
    size_t number = 0;
  };
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.way.most != b.way.most ? a.way.most > b.way.most : a.number > b.number;
  };
  const size_t last = states.size() - 1;
  std::vector<std::vector<End>> ends(size_t(placements.size()));  // by placement, ascending
  ends[0] = {{0, {.most = floor}}};
  // Devices that may be left over are worth nothing: by placement and state, the least with these or fewer.
  std::vector<std::vector<int64_t>> with_fewer(size_t(placements.size()));
  if (fewer) with_fewer[0].assign(states.size(), forbidden_cost);
  std::vector<Candidate> candidates;
  std::optional<Way> best;
  for (int p = 1; p < placements.size(); ++p) {
    const bool complete = placements.complete(p) || fewer;
    std::vector<int64_t>& known = with_fewer[size_t(p)];
    if (fewer) known.assign(states.size(), forbidden_cost);
    for (const Move& move : placements.into(p))
      for (size_t to = 1; to < known.size(); ++to)
        known[to] = std::min(known[to], with_fewer[size_t(move.from)][to]);
    for (size_t to = placements.complete(p) ? last : 1; to <= last; ++to) {
      if ((to == last && !complete) || !may_end(p, states[to])) continue;
      candidates.clear();
      Way way{.most = std::min(below, fewer ? known[to] : forbidden_cost)};
      if (way.most <= floor) continue;
      for (const Move& move : placements.into(p)) {
        const std::vector<End>& before = ends[size_t(move.from)];
        for (size_t i = 0; i < before.size() && before[i].state < to; ++i) {
          const int from = states[before[i].state];
          const int64_t most = std::max(before[i].way.most, at_least(from, states[to], move));
          if (most < way.most && dag.inside(from, states[to]))
            candidates.push_back({{most, before[i].state, i, &move}, candidates.size()});
        }
      }
      std::ranges::make_heap(candidates, later);
      for (auto end = candidates.end(); end != candidates.begin(); --end) {
        const Way next = candidates.front().way;
        if (next.most >= way.most) break;
        const int64_t most = std::max(next.most, cost(states[next.from], states[to], *next.by));
        if (most < way.most) way = next, way.most = most;
        std::pop_heap(candidates.begin(), end, later);
      }
      if (!way.by) continue;
      if (fewer) known[to] = way.most;
      if (to < last)
        ends[size_t(p)].push_back({to, way});
      else
        best = way, below = way.most;
    }
  }
  if (!best) return std::nullopt;
  FoundCuts found{.most = best->most};
  found.cuts.states = {dag.full()};
  for (const Way* way = &*best; way->by; way = &ends[size_t(way->by->from)][way->of_before].way) {
    found.cuts.states.push_back(states[way->from]);
    found.cuts.moves.push_back(way->by);
  }
  std::ranges::reverse(found.cuts.states);
  std::ranges::reverse(found.cuts.moves);
  return found;
}

}  // namespace antichain
