#include "partition/choose_cuts.h"

#include <algorithm>
#include <tuple>

#include "framework/error.h"

namespace antichain {
namespace {

// The best way found to end a stage at `state`; `before` is an index into the previous boundary's candidates.
struct Way {
  int state = 0;
  int before = -1;
  int64_t bytes = 0;
  double squares = 0;  // ns²; sums in a fixed order, so the same on every rank
  bool reached = false;
};

// All states at which stage j − 1 may end, ascending; at most `limit`, and `known` always.
std::vector<Way> candidates(const BottleneckSearch& search, int j, int known, int limit) {
  const AntichainDag& dag = search.dag();
  std::vector<int> states;
  for (int state = 0; state < dag.states(); ++state)
    if (state != known && search.boundary(state, j)) states.push_back(state);
  if (int(states.size()) >= limit) {
    std::stable_sort(states.begin(), states.end(),
                     [&](int a, int b) { return dag.crossing_bytes(a) < dag.crossing_bytes(b); });
    states.resize(limit - 1);
  }
  states.push_back(known);
  std::sort(states.begin(), states.end());
  std::vector<Way> ways;
  for (int state : states) ways.push_back({.state = state});
  return ways;
}

bool better(const Way& a, const Way& b) {
  return !b.reached || std::tie(a.bytes, a.squares) < std::tie(b.bytes, b.squares);
}

// The earlier `before` wins a full tie, because the candidates are tried in ascending order.
void extend(const BottleneckSearch& search, const std::vector<Way>& from, Way& to) {
  const AntichainDag& dag = search.dag();
  for (size_t i = 0; i < from.size() && from[i].state < to.state; ++i) {
    int64_t work = dag.work_ns(to.state) - dag.work_ns(from[i].state);
    if (!from[i].reached || work > search.threshold_ns() || !dag.inside(from[i].state, to.state)) continue;
    Way way = {.state = to.state,
               .before = int(i),
               .bytes = from[i].bytes + dag.crossing_bytes(to.state),
               .squares = from[i].squares + double(work) * double(work),
               .reached = true};
    if (better(way, to)) to = way;
  }
}

}  // namespace

Cuts choose_cuts(const BottleneckSearch& search, int limit) {
  Cuts known = search.any_cuts();
  std::vector<std::vector<Way>> ways = {{{.state = search.dag().empty(), .reached = true}}};
  for (int j = 1; j <= search.stages(); ++j) {
    ways.push_back(j < search.stages() ? candidates(search, j, known[j], limit)
                                       : std::vector<Way>{{.state = search.dag().full()}});
    for (Way& to : ways[j]) extend(search, ways[j - 1], to);
  }
  ANTICHAIN_CHECK(ways.back()[0].reached, "the known solution was lost among the candidates");

  Cuts cuts(ways.size());
  for (int j = search.stages(), i = 0; j >= 0; i = ways[j][i].before, --j) cuts[j] = ways[j][i].state;
  return cuts;
}

}  // namespace antichain
