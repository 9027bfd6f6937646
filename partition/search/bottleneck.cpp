#include "partition/search/bottleneck.h"

#include "partition/plan/finish_plan.h"

#include <algorithm>

#include "framework/error.h"

namespace antichain {
namespace {

constexpr size_t longest_front = 512;
constexpr double none = -1e300;  // no boundary: further than any threshold from everything

}  // namespace

BottleneckSearch::BottleneckSearch(const AntichainDag& dag, const PlacementDag& placements,
                                   const Profile& profile, const PlanOptions& options, Goal goal)
    : dag_(dag),
      placements_(placements),
      goal_(goal),
      transfers_count_(goal != Goal::memory && transfers_count(options)) {
  if (transfers_count_) price_boundaries(options);
  make_gates(profile, options);
  if (goal_ == Goal::time_in_memory)
    fronts_.resize(size_t(table_entries()));
  else
    latest_.resize(size_t(table_entries()));
  passing_.assign(gates_.size(), none);
}

int64_t BottleneckSearch::table_entries(const AntichainDag& dag, const PlacementDag& placements) {
  return int64_t(dag.states()) * int64_t(placements.moves().size());
}

int64_t BottleneckSearch::minimum(int64_t low, int64_t high, Guess guess) {
  low = (low + unit_ - 1) / unit_, high = (high + unit_ - 1) / unit_;
  const int64_t most = high;
  // It goes down from `high` by steps that double until one is too far, and then by halves.
  int64_t step = guess == Guess::good ? (high - low) / 64 + 1 : high;
  while (low < high) {
    const int64_t middle = std::max(low + (high - low) / 2, high - step);
    if (attainable(middle * unit_))
      high = middle, step = std::min(2 * step, high);
    else
      low = middle + 1, step = high;
  }
  if (attainable(high * unit_)) return high * unit_;
  ANTICHAIN_CHECK(high == most || !exact_, "a threshold that was attainable no longer is");
  return -1;
}

// A boundary of a placement matters where the used devices can have done the work before it, and the others
// can do the rest. A label, the best boundary before a state, matters until the next stage must have ended.
// Rounding to whole ns adds at most one per node and unit of speed.
void BottleneckSearch::set_threshold(int64_t threshold) {
  threshold_ = threshold;
  const double T = double(threshold), all = double(dag_.work_ns(dag_.full()));
  for (Terms& terms : terms_) terms.most = terms.divisor * T;
  double total = 0;
  for (int p = 0; p < placements_.size(); ++p)
    if (placements_.complete(p)) total = std::max(total, placements_.capacity(p));
  const double slack = equal_speeds_ ? 0 : (dag_.graph().size() + 1) * (total + 1);
  const bool anywhere = goal_ == Goal::memory || !own_times_;
  ending_.clear(), most_work_.clear();
  for (int p = 0; p < placements_.size(); ++p) {
    const double used = placements_.capacity(p), least = anywhere ? 0 : all - T * (total - used) - slack;
    ending_.push_back({least, anywhere ? all : T * used + slack});
    double most = p > 0 ? most_work_.back() : 0;
    if (gates_begin_[p] < gates_begin_[p + 1]) {
      const double crew = gates_[gates_begin_[p + 1] - 1].crew;  // the strongest
      most = std::max(most, anywhere ? all : T * (used + crew) + slack);
    }
    most_work_.push_back(most);
  }
}

bool BottleneckSearch::allowed(int state, int gate) const {
  const double* transfer_ns = gate_prices_[gate].transfer_ns;
  return !transfer_ns || state == dag_.empty() || transfer_ns[state] <= double(threshold_);
}

bool BottleneckSearch::ends(int state, int placement) const {
  if (state == dag_.empty() || placement == 0) return state == dag_.empty() && placement == 0;
  const std::span<const Move> moves = placements_.into(placement);
  const Terms* terms = &terms_[size_t(moves.data() - placements_.moves().data())];
  const size_t row = size_t(state) * gates_.size();
  if (goal_ == Goal::time_in_memory) {
    return std::any_of(terms, terms + moves.size(), [&](const Terms& t) {
      const double price = t.f[state] - t.most,
                   memory = memory_[gates_[t.gate].memory][state] - t.memory_limit;
      const Front& front = fronts_[row + size_t(t.gate)];
      return std::any_of(front.begin(), front.end(),
                         [&](const Point& p) { return p.price >= price && p.memory >= memory; });
    });
  }
  return std::any_of(terms, terms + moves.size(),
                     [&](const Terms& t) { return t.f[state] - latest_[row + size_t(t.gate)] <= t.most; });
}

bool BottleneckSearch::boundary(int state, int placement) const {
  return ending_[placement].holds(double(dag_.work_ns(state))) && ends(state, placement);
}

bool BottleneckSearch::attainable(int64_t threshold) {
  set_threshold(threshold);
  if (goal_ == Goal::time_in_memory)
    for (Front& front : fronts_) front.clear();
  else
    std::fill_n(latest_.begin(), gates_.size(), none);  // other rows: by the first state before theirs
  // Both ends of the placements whose labels matter ascend with capacity, and work hardly changes from state
  // to state.
  int first = 0, last = 0;
  const int end = placements_.size();
  for (int state = 0, reached = 0; state < dag_.full(); ++state) {
    if (state > reached) return false;  // no label has come so far
    const double work = double(dag_.work_ns(state));
    while (first > 0 && most_work_[first - 1] >= work) --first;
    while (first < end && most_work_[first] < work) ++first;
    while (last > 0 && ending_[last - 1].least > work) --last;
    while (last < end && ending_[last].least <= work) ++last;
    const bool passed =
        goal_ == Goal::time_in_memory ? pass_fronts_on(state, first, last) : pass_on(state, first, last);
    if (passed)
      for (int next : dag_.next(state)) reached = std::max(reached, next);
  }
  for (int p = 0; p < end; ++p)
    if (placements_.complete(p) && ends(dag_.full(), p)) return true;
  return false;
}

// Returns whether there was anything to pass on.
bool BottleneckSearch::pass_on(int state, int first, int last) {
  const size_t width = gates_.size();
  const double* mine = &latest_[size_t(state) * width];
  const double work = double(dag_.work_ns(state));
  const size_t begin = first < last ? size_t(gates_begin_[first]) : 0,
               end = first < last ? size_t(gates_begin_[last]) : 0;
  double any = none;
  for (int p = first; p < last; ++p) {
    const bool ended = ending_[p].holds(work) && ends(state, p);
    for (int g = gates_begin_[p]; g < gates_begin_[p + 1]; ++g) {
      passing_[g] = ended && allowed(state, g) ? gate_prices_[g].f[state] : mine[g];
      any = std::max(any, passing_[g]);
    }
  }
  const double* passing = passing_.data();
  for (int next : dag_.next(state)) {
    double* theirs = &latest_[size_t(next) * width];
    if (dag_.before(next) == state) {
      for (size_t g = 0; g < width; ++g) theirs[g] = passing[g];
    } else {
      for (size_t g = begin; g < end; ++g) theirs[g] = theirs[g] < passing[g] ? passing[g] : theirs[g];
    }
  }
  std::fill(passing_.begin() + begin, passing_.begin() + end, none);
  return any > none;
}

// Keeps a front what it is, and returns false when it was full.
bool BottleneckSearch::add(Front& front, const Point& point) const {
  const auto place = std::lower_bound(front.begin(), front.end(), point,
                                      [](const Point& a, const Point& b) { return a.price > b.price; });
  if (place != front.begin() && std::prev(place)->memory >= point.memory) return true;
  if (place != front.end() && place->price == point.price && place->memory >= point.memory) return true;
  auto beaten = place;
  while (beaten != front.end() && beaten->memory <= point.memory) ++beaten;
  if (beaten != place) {
    *place = point;
    front.erase(place + 1, beaten);
    return true;
  }
  if (front.size() >= longest_front) return false;
  front.insert(place, point);
  return true;
}

bool BottleneckSearch::pass_fronts_on(int state, int first, int last) {
  bool any = false;
  for (int p = first; p < last; ++p) {
    const bool ended = gates_begin_[p] < gates_begin_[p + 1] && ends(state, p);
    for (int g = gates_begin_[p]; g < gates_begin_[p + 1]; ++g) {
      const Gate& gate = gates_[g];
      const Point here = {prices_[gate.price][state], memory_[gate.memory][state]};
      const Front& mine = fronts_[size_t(state) * gates_.size() + size_t(g)];
      for (int next : dag_.next(state)) {
        Front& theirs = fronts_[size_t(next) * gates_.size() + size_t(g)];
        if (ended && allowed(state, g)) {
          exact_ &= add(theirs, here);  // this state beats all that lie inside it
        } else {
          for (const Point& point : mine) exact_ &= add(theirs, point);
        }
        any |= !theirs.empty();
      }
    }
  }
  return any;
}

int64_t BottleneckSearch::stage_ns(int from, int to, const Move& move, int64_t again_ns) const {
  const Prices& f = prices_[gates_[terms_of(move).gate].price];
  return of_one_replica(int64_t(f[to] - f[from]) + again_ns, move.replicas);
}

int64_t BottleneckSearch::boundary_ns(int state, const Move& after) const {
  const double* ns = gate_prices_[terms_of(after).gate].transfer_ns;
  return ns && state != dag_.empty() ? int64_t(ns[state]) : 0;
}

bool BottleneckSearch::fits(int from, int to, const Move& move) const {
  const Terms& terms = terms_of(move);
  const Gate& gate = gates_[terms.gate];
  if (terms.f[to] - terms.f[from] > terms.most || !allowed(from, terms.gate)) return false;
  return goal_ != Goal::time_in_memory ||
         memory_[gate.memory][to] - memory_[gate.memory][from] <= terms.memory_limit;
}

bool BottleneckSearch::within_limits(const Cuts& cuts) const {
  for (size_t s = 0; s < cuts.moves.size(); ++s) {
    const Terms& terms = terms_of(*cuts.moves[s]);
    const Prices& bytes = memory_[gates_[terms.gate].memory];
    if (bytes[cuts.states[s + 1]] - bytes[cuts.states[s]] > terms.memory_limit) return false;
  }
  return true;
}

Cuts BottleneckSearch::any_cuts() const {
  std::vector<int64_t> most_so_far(size_t(dag_.states()));
  for (int state = 1; state < dag_.states(); ++state)
    most_so_far[state] = std::max(most_so_far[state - 1], dag_.work_ns(state));
  Cuts cuts;
  cuts.states = {dag_.full()};
  int placement = placements_.size() - 1;
  while (!(placements_.complete(placement) && ends(dag_.full(), placement))) --placement;
  while (placement != 0) {
    const int after = cuts.states.back();
    int found = -1;
    const Move* by = nullptr;
    for (const Move& move : placements_.into(placement)) {
      for (int state = after - 1; state >= 0; --state) {
        if (found >= 0 && most_so_far[state] < dag_.work_ns(found)) break;
        if (found >= 0 && dag_.work_ns(state) < dag_.work_ns(found)) continue;
        if (fits(state, after, move) && boundary(state, move.from) && dag_.inside(state, after))
          found = state, by = &move;
      }
      if (found >= 0) break;
    }
    ANTICHAIN_CHECK(found >= 0, "a boundary that was found has gone");
    cuts.states.push_back(found);
    cuts.moves.push_back(by);
    placement = by->from;
  }
  std::reverse(cuts.states.begin(), cuts.states.end());
  std::reverse(cuts.moves.begin(), cuts.moves.end());
  return cuts;
}

}  // namespace antichain
