#include "pipeline/schedule/happens_before.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

// A MessageEnd is a send or a recv. Equal keys belong together.
struct MessageEnd {
  int microbatch = -1;
  Message message;
  int index = 0;  // in the list of its rank
  auto key() const { return std::tie(message, microbatch); }
  bool operator<(const MessageEnd& other) const {
    return std::tuple(key(), index) < std::tuple(other.key(), other.index);
  }
};

void check_peer(const Schedule& schedule, int rank, const Action& action) {
  if (action.peer < 0 || action.peer >= int(schedule.ranks.size()))
    throw Error(fmt::format("schedule, rank {}: {} names a rank that is not there", rank, print(action)));
}

// ByPair holds all sends, or all recvs, by the pair of ranks they go from and to. Those of one pair are in
// the order of the rank's list.
class ByPair {
 public:
  ByPair(const Schedule& schedule, Verb verb)
      : ranks_(schedule.ranks.size()), begin_(ranks_ * ranks_ + 1, 0) {
    each(schedule, verb, [&](size_t pair, const Action&, int) { ++begin_[pair + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    ends_.resize(size_t(begin_.back()));
    std::vector<int> at(begin_.begin(), begin_.end() - 1);
    each(schedule, verb, [&](size_t pair, const Action& a, int index) {
      ends_[size_t(at[pair]++)] = {a.microbatch, a.message, index};
    });
  }
  std::span<MessageEnd> operator()(size_t from, size_t to) {
    const size_t pair = from * ranks_ + to;
    return {ends_.data() + begin_[pair], ends_.data() + begin_[pair + 1]};
  }

 private:
  template <class Visit>
  void each(const Schedule& schedule, Verb verb, Visit visit) const {
    for (size_t r = 0; r < ranks_; ++r)
      for (size_t i = 0; i < schedule.ranks[r].size(); ++i) {
        const Action& a = schedule.ranks[r][i];
        if (a.verb != verb) continue;
        check_peer(schedule, int(r), a);
        visit(verb == Verb::send ? r * ranks_ + size_t(a.peer) : size_t(a.peer) * ranks_ + r, a, int(i));
      }
  }
  size_t ranks_;
  std::vector<int> begin_;  // of each pair, in ends_
  std::vector<MessageEnd> ends_;
};

// Two ranks that send and receive in the same order, as generated schedules do, need no sorting.
bool in_step(std::span<const MessageEnd> sends, std::span<const MessageEnd> recvs) {
  return std::equal(sends.begin(), sends.end(), recvs.begin(), recvs.end(),
                    [](const MessageEnd& a, const MessageEnd& b) { return a.key() == b.key(); });
}

// Calls pair(send, recv) for those that belong together.
template <class Pair>
void match(std::span<MessageEnd> sends, std::span<MessageEnd> recvs, Pair pair) {
  if (!in_step(sends, recvs)) std::sort(sends.begin(), sends.end()), std::sort(recvs.begin(), recvs.end());
  for (size_t s = 0, r = 0; s < sends.size() && r < recvs.size();) {
    if (sends[s].key() == recvs[r].key())
      pair(sends[s++], recvs[r++]);
    else
      ++(sends[s].key() < recvs[r].key() ? s : r);
  }
}

// The n-th reduces of one bucket, on whichever ranks there are any, are one meeting, and so are the n-th
// votes, whatever their stages.
void add_meetings(Partners& partners, const Schedule& schedule) {
  std::vector<std::pair<Action, int>> known;  // of each meeting: the action, and n
  for (int r = 0; r < int(schedule.ranks.size()); ++r) {
    std::vector<Action> before;  // this rank's reduces so far
    for (int i = 0; i < int(schedule.ranks[r].size()); ++i) {
      Action action = schedule.ranks[r][i];
      if (!joins(action.verb)) continue;
      if (action.verb == Verb::vote) action.stage = 0;
      const std::pair which(action, int(std::count(before.begin(), before.end(), action)));
      before.push_back(action);
      const auto found = std::find(known.begin(), known.end(), which);
      partners.of[r][i] = int(found - known.begin());
      if (found == known.end()) known.push_back(which), partners.meetings.emplace_back();
      partners.meetings[partners.of[r][i]].push_back({r, i});
    }
  }
}

void raise_to(std::vector<int32_t>& clock, const std::vector<int32_t>& other) {
  for (size_t r = 0; r < clock.size(); ++r) clock[r] = std::max(clock[r], other[r]);
}

}  // namespace

Partners match_messages(const Schedule& schedule) {
  Partners partners;
  const size_t ranks = schedule.ranks.size();
  for (const auto& actions : schedule.ranks) partners.of.emplace_back(actions.size(), -1);
  ByPair sends(schedule, Verb::send), recvs(schedule, Verb::recv);
  for (size_t from = 0; from < ranks; ++from)
    for (size_t to = 0; to < ranks; ++to)
      match(sends(from, to), recvs(from, to), [&](const MessageEnd& send, const MessageEnd& recv) {
        partners.of[from][send.index] = recv.index;
        partners.of[to][recv.index] = send.index;
      });
  add_meetings(partners, schedule);
  return partners;
}

void check_all_reached(const Schedule& schedule, const std::vector<int>& reached) {
  std::string stuck;
  for (size_t r = 0; r < reached.size(); ++r)
    if (reached[r] < int(schedule.ranks[r].size()))
      stuck += fmt::format("{}rank {} waits forever in {}", stuck.empty() ? "" : ", ", r,
                           print(schedule.ranks[r][reached[r]]));
  if (!stuck.empty()) throw Error("the schedule deadlocks: " + stuck);
}

HappensBefore::HappensBefore(const Schedule& schedule, const Partners& partners) {
  const size_t ranks = schedule.ranks.size();
  for (const auto& actions : schedule.ranks) row_.emplace_back(actions.size(), -1);
  std::vector<std::vector<int32_t>> now(ranks, std::vector<int32_t>(ranks, 0));
  std::map<std::pair<int, int>, std::vector<int32_t>> travelling;  // the clock that a message carries

  const auto visit = [&](int r, int i) {
    const Action& action = schedule.ranks[r][i];
    if (action.verb == Verb::recv)
      raise_to(now[r], travelling.extract({action.peer, partners.of[r][i]}).mapped());
    now[r][r] = i + 1;
    if (action.verb == Verb::send) travelling.emplace(std::pair(r, i), now[r]);
    if (!computes(action.verb)) return;
    row_[r][i] = int(clocks_.size() / ranks);
    clocks_.insert(clocks_.end(), now[r].begin(), now[r].end());
  };
  const auto meet = [&](const std::vector<ActionPlace>& places) {
    std::vector<int32_t> all(ranks, 0);
    for (const ActionPlace& place : places) raise_to(all, now[place.rank]);
    for (const ActionPlace& place : places) now[place.rank] = all;
  };
  const std::vector<int> reached = walk(schedule, partners, visit, meet);
  check_all_reached(schedule, reached);
}

bool HappensBefore::operator()(int rank, int index, int later_rank, int later_index) const {
  const int row = row_[later_rank][later_index];
  ANTICHAIN_CHECK(row >= 0, "clocks are kept for compute actions only");
  const bool itself = rank == later_rank && index == later_index;
  return !itself && clocks_[size_t(row) * row_.size() + rank] > index;
}

}  // namespace antichain
