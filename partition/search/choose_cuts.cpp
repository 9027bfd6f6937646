#include "partition/search/choose_cuts.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "framework/error.h"

namespace antichain {
namespace {

// A Way is the best way found for a placement to end at `state`. `before` is an index into the ways of the
// move's origin.
struct Way {
  int state = 0;
  int before = -1;
  const Move* by = nullptr;
  // These are whole numbers. Squares of nanoseconds beyond 2^53 round in a fixed order, the same on every
  // rank.
  double bytes = 0, squares = 0;
  bool reached = false;
};
using Ways = std::vector<Way>;

bool better(const Way& a, const Way& b, TieRule rule) {
  if (!b.reached) return true;
  return rule == TieRule::fewest_bytes ? std::tie(a.bytes, a.squares) < std::tie(b.bytes, b.squares)
                                       : std::tie(a.squares, a.bytes) < std::tie(b.squares, b.bytes);
}

class Chooser {
 public:
  Chooser(const BottleneckSearch& search, TieRule rule, int limit)
      : search_(search), rule_(rule), known_(search.any_cuts()), ways_(size_t(search.placements().size())) {
    // All pairs of candidates are tried for every move: a million.
    const double moves = double(search.placements().moves().size());
    limit_ = std::clamp(int(std::sqrt(1e6 / moves)), 4, limit);
    ways_[0] = {{.state = search.dag().empty(), .reached = true}};
  }

  Cuts run() {
    for (int p = 1; p < int(ways_.size()); ++p) {
      ways_[p] = candidates(p);
      for (const Move& move : search_.placements().into(p))
        for (Way& to : ways_[p]) extend(move, to);
    }
    return trace_back();
  }

 private:
  // Returns all states at which the placement may end, ascending: at most `limit_`, and the known solution's
  // always.
  Ways candidates(int placement) const {
    const AntichainDag& dag = search_.dag();
    std::vector<int> states, known = known_states(placement);
    if (search_.placements().complete(placement)) {
      if (search_.boundary(dag.full(), placement)) states.push_back(dag.full());
    } else {
      for (int state = 1; state < dag.full(); ++state)
        if (search_.boundary(state, placement)) states.push_back(state);
    }
    if (int(states.size()) > limit_) {
      std::nth_element(states.begin(), states.begin() + limit_, states.end(), [&](int a, int b) {
        return std::pair(dag.crossing_bytes(a), a) < std::pair(dag.crossing_bytes(b), b);
      });
      states.resize(size_t(limit_));
    }
    states.insert(states.end(), known.begin(), known.end());
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
    Ways ways;
    for (int state : states) ways.push_back({.state = state});
    return ways;
  }

  std::vector<int> known_states(int placement) const {
    for (size_t s = 0; s < known_.moves.size(); ++s)
      if (known_.moves[s]->to == placement) return {known_.states[s + 1]};
    return {};
  }

  // The earlier `before` wins a full tie, because the candidates are tried in ascending order.
  void extend(const Move& move, Way& to) const {
    const AntichainDag& dag = search_.dag();
    const Ways& from = ways_[move.from];
    for (size_t i = 0; i < from.size() && from[i].state < to.state; ++i) {
      if (!from[i].reached || !search_.fits(from[i].state, to.state, move) ||
          !dag.inside(from[i].state, to.state))
        continue;
      const double ns = double(search_.stage_ns(from[i].state, to.state, move));
      Way way = {.state = to.state,
                 .before = int(i),
                 .by = &move,
                 .bytes = from[i].bytes + double(dag.crossing_bytes(to.state)),
                 .squares = from[i].squares + ns * ns,
                 .reached = true};
      if (better(way, to, rule_)) to = way;
    }
  }

  Cuts trace_back() const {
    const Way* last = nullptr;
    for (int p = 0; p < int(ways_.size()); ++p)
      if (search_.placements().complete(p) && !ways_[p].empty() && ways_[p].back().reached)
        if (!last || better(ways_[p].back(), *last, rule_)) last = &ways_[p].back();
    ANTICHAIN_CHECK(last, "the known solution was lost among the candidates");
    Cuts cuts;
    for (const Way* way = last; way->by; way = &ways_[way->by->from][size_t(way->before)]) {
      cuts.states.push_back(way->state);
      cuts.moves.push_back(way->by);
    }
    cuts.states.push_back(search_.dag().empty());
    std::reverse(cuts.states.begin(), cuts.states.end());
    std::reverse(cuts.moves.begin(), cuts.moves.end());
    return cuts;
  }

  const BottleneckSearch& search_;
  const TieRule rule_;
  const Cuts known_;
  int limit_;
  std::vector<Ways> ways_;  // per placement
};

}  // namespace

Cuts choose_cuts(const BottleneckSearch& search, TieRule rule, int limit) {
  return Chooser(search, rule, limit).run();
}

}  // namespace antichain
