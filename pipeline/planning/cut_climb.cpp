#include "pipeline/planning/cut_climb.h"

#include <algorithm>
#include <numeric>

namespace antichain {
namespace {

// So many neighbours up and down of one boundary are tried with those of the next.
constexpr size_t most_in_pairs = 4;
constexpr int narrow_places = 4;
constexpr int rounds = 5;           // of a walk, each from the best so far
constexpr double threshold = 0.1;   // a step may get so much longer, as a share, when the first round begins
constexpr int64_t most_splits = 8;  // of one stage in two

// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
uint64_t split_mix(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

const Move* move_between(const PlacementDag& placements, int from, int to) {
  for (const Move& move : placements.into(to))
    if (move.from == from) return &move;
  return nullptr;
}

}  // namespace

CutClimb::CutClimb(CutScorer& score)
    : score_(score),
      dag_(score.dag()),
      placements_(score.placements()),
      choice_(int(placements_.moves().size()) >= placements_.size()),
      before_begin_(size_t(dag_.states()) + 1, 0) {
  for (int state = 0; state < dag_.states(); ++state)
    for (int next : dag_.next(state)) ++before_begin_[size_t(next) + 1];
  std::partial_sum(before_begin_.begin(), before_begin_.end(), before_begin_.begin());
  before_.resize(size_t(before_begin_.back()));
  std::vector<int64_t> place(before_begin_.begin(), before_begin_.end() - 1);
  for (int state = 0; state < dag_.states(); ++state)
    for (int next : dag_.next(state)) before_[size_t(place[size_t(next)]++)] = state;
  for (int state = 1; state < dag_.full(); ++state) {
    const auto no_narrower = [&](int other) {
      return other == dag_.empty() || other == dag_.full() ||
             dag_.crossing_bytes(other) >= dag_.crossing_bytes(state);
    };
    const std::vector<int> around = near(state);
    if (std::all_of(around.begin(), around.end(), no_narrower)) narrow_.push_back(state);
  }
}

std::span<const int> CutClimb::before(int state) const {
  return {before_.data() + before_begin_[size_t(state)], before_.data() + before_begin_[size_t(state) + 1]};
}

std::vector<int> CutClimb::near(int state) const {
  const std::span<const int> less = before(state), more = dag_.next(state);
  std::vector<int> states(less.begin(), less.end());
  states.insert(states.end(), more.begin(), more.end());
  return states;
}

// Returns states 2, 4, 8 … nodes away, always by the first or always by the last way, and as far along the
// state sequence.
std::vector<int> CutClimb::far(int state) const {
  std::vector<int> states;
  const auto walk = [&](auto ways, bool last) {
    int at = state;
    for (int steps = 1, mark = 2; mark <= 64 && !ways(at).empty(); ++steps) {
      at = last ? ways(at).back() : ways(at).front();
      if (steps == mark) states.push_back(at), mark *= 2;
    }
  };
  for (bool last : {false, true}) {
    walk([&](int at) { return dag_.next(at); }, last);
    walk([&](int at) { return before(at); }, last);
  }
  for (int stride = 2; stride < dag_.states(); stride *= 2)
    for (int to : {state - stride, state + stride})
      if (to > dag_.empty() && to < dag_.full()) states.push_back(to);
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
  return states;
}

std::vector<int> CutClimb::narrow(int state, int count) const {
  const auto above = std::upper_bound(narrow_.begin(), narrow_.end(), state);
  const auto below = std::lower_bound(narrow_.begin(), narrow_.end(), state);
  std::vector<int> states(below - std::min<int64_t>(count, below - narrow_.begin()), below);
  states.insert(states.end(), above, above + std::min<int64_t>(count, narrow_.end() - above));
  return states;
}

std::vector<int> CutClimb::for_pairs(int state) const {
  const std::span<const int> less = before(state), more = dag_.next(state);
  std::vector<int> states(less.begin(), less.begin() + int64_t(std::min(less.size(), most_in_pairs)));
  states.insert(states.end(), more.begin(), more.begin() + int64_t(std::min(more.size(), most_in_pairs)));
  const std::vector<int> places = narrow(state, 1);
  states.insert(states.end(), places.begin(), places.end());
  return states;
}

// Returns some states between two others: narrow ones where there are any.
std::vector<int> CutClimb::between(int from, int to) const {
  const auto begin = std::upper_bound(narrow_.begin(), narrow_.end(), from);
  const auto end = std::lower_bound(begin, narrow_.end(), to);
  const bool any = begin != end;
  const int64_t all = any ? end - begin : to - from - 1;
  std::vector<int> states;
  for (int64_t i = 0, some = std::min(most_splits, all); i < some; ++i) {
    const int64_t at = (2 * i + 1) * all / (2 * some);
    states.push_back(any ? begin[at] : from + 1 + int(at));
  }
  return states;
}

// Returns the changes that placements allow.
std::vector<CutClimb::Change> CutClimb::other_devices(const Cuts& cuts, size_t stage) const {
  std::vector<Change> found;
  const Move& own = *cuts.moves[stage];
  const auto on_two = [&](int end, size_t stages, const std::vector<int>& states) {
    for (int middle = own.from + 1; middle < end; ++middle) {
      const Move *first = move_between(placements_, own.from, middle),
                 *second = move_between(placements_, middle, end);
      if (!first || !second || (stages == 2 && middle == own.to)) continue;
      for (int state : states) found.push_back({stages, first, second, state});
    }
  };
  if (own.replicas > 1) on_two(own.to, 1, between(cuts.states[stage], cuts.states[stage + 1]));
  if (stage + 1 == cuts.moves.size()) return found;
  const int end = cuts.moves[stage + 1]->to;
  if (const Move* one = move_between(placements_, own.from, end)) found.push_back({2, one});
  on_two(end, 2, {cuts.states[stage + 1]});
  return found;
}

void CutClimb::apply(const Change& change, size_t stage, Cuts& cuts) {
  const auto move = cuts.moves.begin() + int64_t(stage);
  const auto state = cuts.states.begin() + int64_t(stage) + 1;
  const auto next_move = cuts.moves.erase(move, move + int64_t(change.stages));
  const auto next_state = cuts.states.erase(state, state + int64_t(change.stages) - 1);
  if (change.second) {
    cuts.moves.insert(next_move, {change.first, change.second});
    cuts.states.insert(next_state, change.state);
  } else {
    cuts.moves.insert(next_move, change.first);
  }
}

bool CutClimb::take_if_easier(ScoredCuts& at, const Cuts& cuts) {
  const std::optional<Score> score = score_(cuts, at.score.step_s, at.score.lacking_bytes);
  if (!score || !score->eases(at.score)) return false;
  at = {cuts, *score};
  return true;
}

bool CutClimb::improve_state(ScoredCuts& at, size_t boundary, int64_t end) {
  const int from = at.cuts.states[boundary];
  Cuts moved = at.cuts;
  for (const std::vector<int>& states : {near(from), narrow(from, narrow_places), far(from)})
    for (int state : states) {
      if (score_.spent() >= end) return false;
      moved.states[boundary] = state;
      if (take_if_easier(at, moved)) return true;
    }
  return false;
}

bool CutClimb::improve_two_states(ScoredCuts& at, size_t boundary, int64_t end) {
  if (boundary + 2 >= at.cuts.states.size()) return false;
  Cuts moved = at.cuts;
  for (int first : for_pairs(at.cuts.states[boundary]))
    for (int second : for_pairs(at.cuts.states[boundary + 1])) {
      if (score_.spent() >= end) return false;
      moved.states[boundary] = first, moved.states[boundary + 1] = second;
      if (take_if_easier(at, moved)) return true;
    }
  return false;
}

bool CutClimb::improve_devices(ScoredCuts& at, size_t stage, int64_t end) {
  if (!choice_) return false;
  for (const Change& change : other_devices(at.cuts, stage)) {
    if (score_.spent() >= end) return false;
    Cuts moved = at.cuts;
    apply(change, stage, moved);
    if (take_if_easier(at, moved)) return true;
  }
  return false;
}

ScoredCuts CutClimb::climb(const ScoredCuts& start, int64_t budget) {
  const int64_t end = score_.spent() + budget;
  ScoredCuts at = start, best = start;
  size_t idle = 0;  // stages in a row at which nothing was better
  for (size_t stage = 0; idle < at.cuts.moves.size() && score_.spent() < end; ++stage, ++idle) {
    stage %= at.cuts.moves.size();
    while (stage < at.cuts.moves.size() &&
           ((stage > 0 && (improve_state(at, stage, end) || improve_two_states(at, stage, end))) ||
            improve_devices(at, stage, end))) {
      if (at.score < best.score) best = at;
      idle = 0;
    }
  }
  return best;
}

// Moves one boundary or two neighbouring ones elsewhere, or takes other devices.
void CutClimb::jump(Cuts& cuts) {
  const size_t boundaries = cuts.moves.size() - 1;
  if (choice_ && (boundaries == 0 || split_mix(random_) % 4 == 0)) {
    const size_t stage = split_mix(random_) % cuts.moves.size();
    const std::vector<Change> changes = other_devices(cuts, stage);
    if (!changes.empty()) apply(changes[split_mix(random_) % changes.size()], stage, cuts);
    return;
  }
  size_t b = 1 + split_mix(random_) % boundaries;
  const bool two = split_mix(random_) % 4 == 0 && b < boundaries;
  for (const size_t last = b + (two ? 1 : 0); b <= last; ++b) cuts.states[b] = somewhere_near(cuts.states[b]);
}

int CutClimb::somewhere_near(int state) {
  if (split_mix(random_) % 4 == 0)
    if (const std::vector<int> places = narrow(state, narrow_places); !places.empty())
      return places[split_mix(random_) % places.size()];
  const bool more = split_mix(random_) % 2;
  return after_steps(state, more, uint64_t(1) << (split_mix(random_) % 4));
}

// Returns a state with so many nodes more or less.
int CutClimb::after_steps(int state, bool more, uint64_t steps) {
  for (; steps > 0; --steps) {
    const std::span<const int> ways = more ? dag_.next(state) : before(state);
    if (!ways.empty()) state = ways[split_mix(random_) % ways.size()];
  }
  return state;
}

void CutClimb::shift(Cuts& cuts, uint64_t boundaries) {
  const size_t first = 1 + split_mix(random_) % (cuts.moves.size() - 1);
  const bool more = split_mix(random_) % 2;
  const uint64_t steps = uint64_t(1) << (split_mix(random_) % 4);
  for (size_t b = first; b < std::min(first + boundaries, cuts.moves.size()); ++b)
    cuts.states[b] = after_steps(cuts.states[b], more, steps);
}

ScoredCuts CutClimb::wander(const ScoredCuts& start, int64_t budget) {
  ScoredCuts best = start;
  if (best.cuts.moves.size() < 2 && !choice_) return best;
  Cuts elsewhere;
  double first = threshold;
  for (int round = 0; round < rounds; ++round, first /= 2) {
    const int64_t begin = score_.spent(), end = begin + budget / rounds;
    ScoredCuts at = best;
    while (score_.spent() < end) {
      const double share = first * double(end - score_.spent()) / double(end - begin);
      const double limit_s = at.score.step_s * (1 + share);
      // While memory is lacking, the step may be of any length, and a share of memory more may be lacking.
      int64_t lacking = best.score.lacking_bytes;
      if (lacking > 0) lacking += int64_t(share * double(score_.memory_bytes()));
      elsewhere = at.cuts;
      jump(elsewhere);
      const std::optional<Score> score = score_(elsewhere, limit_s, lacking);
      if (!score || (lacking == 0 && score->step_s > limit_s)) continue;
      at = {elsewhere, *score};
      if (at.score < best.score) best = at;
    }
    best = climb(best, budget / rounds);
  }
  return best;
}

}  // namespace antichain
