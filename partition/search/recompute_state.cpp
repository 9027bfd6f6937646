#include "partition/search/recompute_state.h"

namespace antichain {
namespace {

// What a state knows of a tensor that later nodes read.
enum Where : char {
  there,      // kept, and counted
  uncounted,  // not needed so far; what is computed again from it needs it
  own,        // computed again by the segment that goes on
  joined,     // by an earlier one that this one reads
  closed,     // by closed segment 0; the next is closed + 1
};

void rename(RecomputeState& state, char from, char to) {
  std::replace(state.where.begin(), state.where.end(), from, to);
}

void remove(RecomputeState& state, size_t k) {
  state.closed.erase(state.closed.begin() + std::ptrdiff_t(k));
  for (char& where : state.where)
    if (where > closed + int(k)) --where;
}

// So many bytes are there at the place at hand.
void note(RecomputeState& state, int64_t here) {
  for (RecomputeState::Closed& segment : state.closed) segment.beside = std::max(segment.beside, here);
}

// The closed segment has to be there up to the place before the one at hand.
void extend(RecomputeState& state, RecomputeStep& step, size_t k) {
  RecomputeState::Closed& segment = state.closed[k];
  if (segment.beside < 0) return;
  const int64_t with = segment.beside + segment.bytes;
  step.working_bytes = std::max(step.working_bytes, with);
  for (RecomputeState::Closed& other : state.closed) {
    if (&other == &segment) continue;
    if (other.until <= segment.until)
      other.beside = std::max(other.beside, with);
    else if (other.beside >= 0)
      other.beside += segment.bytes;
  }
  segment.beside = -1;
}

}  // namespace

std::string RecomputeState::key() const {
  std::string key = where;
  for (size_t k = 1; k < closed.size(); ++k)
    for (size_t l = 0; l < k; ++l)
      key += closed[k].until < closed[l].until ? '<' : closed[k].until > closed[l].until ? '>' : '=';
  return key + (open ? '+' : '-');
}

void RecomputeState::write_bytes(int64_t unit, std::string& key) const {
  const auto write = [&](int64_t amount) {
    for (uint64_t units = uint64_t(amount + 1) / uint64_t(unit);; units >>= 7) {
      key += char((units & 127) | (units > 127 ? 128 : 0));
      if (units <= 127) break;
    }
  };
  write(bytes), write(excess), write(beyond);
  for (const Closed& segment : closed) write(segment.bytes), write(segment.excess), write(segment.beside);
}

bool RecomputeState::beats(const RecomputeState& other) const {
  if (bytes > other.bytes || excess > other.excess || beyond > other.beyond) return false;
  for (size_t k = 0; k < closed.size(); ++k)
    if (closed[k].bytes > other.closed[k].bytes || closed[k].excess > other.closed[k].excess ||
        closed[k].beside > other.closed[k].beside)
      return false;
  return true;
}

void RecomputeState::meet(const RecomputeState& other) {
  bytes = std::min(bytes, other.bytes), excess = std::min(excess, other.excess);
  beyond = std::min(beyond, other.beyond);
  for (size_t k = 0; k < closed.size(); ++k) {
    closed[k].bytes = std::min(closed[k].bytes, other.closed[k].bytes);
    closed[k].excess = std::min(closed[k].excess, other.closed[k].excess);
    closed[k].beside = std::min(closed[k].beside, other.closed[k].beside);
  }
}

RecomputeSteps::RecomputeSteps(const StageOrder& order) : order_(order) {
  const int n = order.size();
  open_.resize(size_t(n) + 1);
  for (int i = 0; i <= n; ++i)
    for (int t = 0; t < int(order.tensors.size()); ++t)
      if ((t < i || t >= n) && order.tensors[size_t(t)].last_reader >= i) open_[size_t(i)].push_back(t);
  readers_.resize(order.tensors.size());
  for (int i = 0; i < n; ++i)
    for (const int t : order.places[size_t(i)].inputs) readers_[size_t(t)].push_back(i);
  rest_.resize(size_t(n) + 1);
  for (int i = 0; i < n; ++i) {
    int64_t kept = 0, excess = 0;
    for (int m = i; m < n; ++m) {
      const StageOrder::Place& place = order.places[size_t(m)];
      int64_t passing = order.tensors[size_t(m)].bytes;
      for (const int t : open_[size_t(m)])
        if (t < n && !order.tensors[size_t(t)].reread && order.tensors[size_t(t)].there(m))
          passing += order.tensors[size_t(t)].bytes;
      kept += place.kept_bytes, excess = std::max(excess, passing);
      rest_[size_t(i)] =
          std::max(rest_[size_t(i)], kept + std::max(place.gradient_bytes, place.come_bytes + excess));
    }
  }
}

// Returns what the working sets that are not certain behind place i have at most.
int64_t RecomputeSteps::most_later(const RecomputeState& state, int i) const {
  int64_t all = state.bytes, excess = std::max(state.excess, state.beyond);
  int64_t beside = std::max(rest_[size_t(i) + 1], order_.places[size_t(i)].come_bytes);
  for (const RecomputeState::Closed& segment : state.closed) {
    all += segment.bytes;
    excess = std::max(excess, segment.excess), beside = std::max(beside, segment.beside);
  }
  return all + excess + beside;
}

// Joins closed segments that one and the same place reads, and none behind it: from there on either both are
// there or neither. The joined segment has the earlier `until`. The later one's `beside` is that of places
// behind both, and the earlier one's, of places between, counts less what is not there yet. So no third
// segment may end between them.
void RecomputeSteps::join_alike(RecomputeState& state, int i) const {
  constexpr int none = -1, several = -2;
  if (state.closed.size() < 2) return;
  std::vector<int> reader(state.closed.size(), none);  // twice that, and 1 more where it reads again
  for (size_t s = 0; s < state.where.size(); ++s) {
    if (state.where[s] < closed) continue;
    const int tensor = open_[size_t(i) + 1][s];
    const std::vector<int>& readers = readers_[size_t(tensor)];
    const auto next = std::ranges::upper_bound(readers, i);
    const bool last = next != readers.end() && *next == readers.back();
    const int its = last ? 2 * *next + int(order_.tensors[size_t(tensor)].reread) : several;
    int& known = reader[size_t(state.where[s] - closed)];
    known = known == none || known == its ? its : several;
  }
  for (size_t l = state.closed.size(); l-- > 1;)
    for (size_t k = l; k-- > 0;) {
      if (reader[k] < 0 || reader[k] != reader[l]) continue;
      const bool ordered = state.closed[k].until <= state.closed[l].until;
      const RecomputeState::Closed early = state.closed[ordered ? k : l],
                                   late = state.closed[ordered ? l : k];
      bool between = false;
      for (size_t m = 0; m < state.closed.size(); ++m)
        between |=
            m != k && m != l && state.closed[m].until >= early.until && state.closed[m].until < late.until;
      if (between) continue;
      state.closed[k] = {.bytes = early.bytes + late.bytes,
                         .excess = std::max(early.excess, late.excess),
                         .beside = std::max({late.beside, early.beside - late.bytes, int64_t(-1)}),
                         .until = early.until};
      rename(state, char(closed + int(l)), char(closed + int(k)));
      remove(state, l);
      break;
    }
}

RecomputeState RecomputeSteps::first() const {
  return {.where = std::string(open_[0].size(), char(uncounted))};
}

RecomputeState RecomputeSteps::easiest(int i) const {
  return {.where = std::string(i > order_.size() ? 0 : open_[size_t(i)].size(), char(there))};
}

size_t RecomputeSteps::slot(int i, int tensor) const {
  const std::vector<int>& open = open_[size_t(i)];
  return size_t(std::ranges::lower_bound(open, tensor) - open.begin());
}

void RecomputeSteps::compute_again(RecomputeState& state, RecomputeStep& step, int i) const {
  const StageOrder::Place& place = order_.places[size_t(i)];
  state.open = true;
  for (const int tensor : place.inputs) {
    char& where = state.where[slot(i, tensor)];
    if (where == uncounted) step.kept_bytes += order_.tensors[size_t(tensor)].bytes, where = there;
    if (where < closed) continue;
    const size_t k = size_t(where - closed);
    extend(state, step, k);
    state.bytes += state.closed[k].bytes;
    state.excess = std::max(state.excess, state.closed[k].excess);
    rename(state, where, joined);
    remove(state, k);
  }
  state.bytes += place.kept_bytes;
  int64_t beyond = order_.tensors[size_t(i)].reread ? 0 : order_.tensors[size_t(i)].bytes;
  for (size_t s = 0; s < state.where.size(); ++s) {
    const StageOrder::Read& tensor = order_.tensors[size_t(open_[size_t(i)][s])];
    if (state.where[s] == own && !tensor.reread && tensor.there(i)) beyond += tensor.bytes;
  }
  state.beyond = std::max(state.beyond - place.kept_bytes, beyond);
  const int64_t here = place.gradient_bytes + state.bytes;
  step.working_bytes = std::max(step.working_bytes, here);
  note(state, here);
}

// The segment that goes on ends with place i.
void RecomputeSteps::close(RecomputeState& state, RecomputeStep& step, int i) const {
  const RecomputeState::Closed made{
      .bytes = state.bytes, .excess = std::max(state.excess, state.beyond), .beside = -1, .until = i};
  const int64_t here = order_.places[size_t(i)].come_bytes + made.bytes + made.excess;
  step.working_bytes = std::max(step.working_bytes, here);
  note(state, here);
  const char name = char(closed + int(state.closed.size()));
  state.closed.push_back(made);
  rename(state, own, name), rename(state, joined, name);
  state.open = false;
  state.bytes = state.excess = state.beyond = 0;
}

void RecomputeSteps::keep(RecomputeState& state, RecomputeStep& step, int i) const {
  const StageOrder::Place& place = order_.places[size_t(i)];
  if (state.open) close(state, step, i - 1);
  step.kept_bytes += place.kept_bytes;
  std::vector<bool> read(state.closed.size());
  for (const int tensor : place.inputs) {
    const char where = state.where[slot(i, tensor)];
    if (where >= closed && order_.tensors[size_t(tensor)].reread && place.has_backward)
      read[size_t(where - closed)] = true;
  }
  int64_t bytes = 0, excess = -1;
  for (size_t k = 0; k < read.size(); ++k) {
    if (!read[k]) continue;
    extend(state, step, k);
    bytes += state.closed[k].bytes, excess = std::max(excess, state.closed[k].excess);
  }
  int64_t here = bytes + place.gradient_bytes;
  if (excess >= 0) {
    here = std::max(here, bytes + place.come_bytes + excess);
    step.working_bytes = std::max(step.working_bytes, here);
  }
  note(state, here);
  for (size_t k = 0; k < read.size(); ++k)
    if (read[k]) state.closed[k].until = i, state.closed[k].beside = -1;
}

// Leaves the tensors that places behind i read.
void RecomputeSteps::go_on(RecomputeState& state, int i, bool again) const {
  std::string where;
  for (const int tensor : open_[size_t(i) + 1])
    where += tensor != i                             ? state.where[slot(i, tensor)]
             : again                                 ? char(own)
             : order_.tensors[size_t(tensor)].reread ? char(there)
                                                     : char(uncounted);
  state.where = std::move(where);
  for (size_t k = state.closed.size(); k-- > 0;)
    if (state.where.find(char(closed + int(k))) == std::string::npos) remove(state, k);
}

RecomputeStep RecomputeSteps::step(RecomputeState& state, int i, bool again, int64_t floor) const {
  RecomputeStep step;
  if (i == order_.size()) {
    if (state.open) close(state, step, i - 1);
    state = {};
    return step;
  }
  again ? compute_again(state, step, i) : keep(state, step, i);
  go_on(state, i, again);
  // What makes no difference is made alike.
  if (state.open) {
    state.beyond = std::max(state.beyond, state.excess);
    for (size_t s = 0; s < state.where.size(); ++s)
      if (state.where[s] == joined && order_.tensors[size_t(open_[size_t(i) + 1][s])].reread)
        state.where[s] = own;
  }
  join_alike(state, i);
  if (most_later(state, i) <= floor) {
    for (char& where : state.where)
      if (where != uncounted) where = there;
    state = {.where = std::move(state.where)};
  }
  int64_t all = 0;
  for (const RecomputeState::Closed& segment : state.closed) all += segment.bytes;
  for (RecomputeState::Closed& segment : state.closed)
    if (segment.beside + all <= floor) segment.beside = -1;
  return step;
}

}  // namespace antichain
