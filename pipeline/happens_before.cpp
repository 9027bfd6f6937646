#include "pipeline/happens_before.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

// A send or a recv: equal keys belong together.
struct Posted {
  int from, to, microbatch;
  Message message;
  int index;  // in the list of its rank
  auto key() const { return std::tie(from, to, message, microbatch); }
  bool operator<(const Posted& other) const {
    return std::tuple(key(), index) < std::tuple(other.key(), other.index);
  }
};

void check_peer(const Schedule& schedule, int rank, const Action& action) {
  if (action.peer < 0 || action.peer >= int(schedule.ranks.size()))
    throw Error(fmt::format("schedule, rank {}: {} names a rank that is not there", rank, print(action)));
}

std::vector<Posted> posted(const Schedule& schedule, Verb verb) {
  std::vector<Posted> found;
  for (int r = 0; r < int(schedule.ranks.size()); ++r)
    for (int i = 0; i < int(schedule.ranks[r].size()); ++i) {
      const Action& a = schedule.ranks[r][i];
      if (a.verb != verb) continue;
      check_peer(schedule, r, a);
      const auto [from, to] = verb == Verb::send ? std::pair(r, a.peer) : std::pair(a.peer, r);
      found.push_back({from, to, a.microbatch, a.message, i});
    }
  std::sort(found.begin(), found.end());
  return found;
}

void raise_to(std::vector<int32_t>& clock, const std::vector<int32_t>& other) {
  for (size_t r = 0; r < clock.size(); ++r) clock[r] = std::max(clock[r], other[r]);
}

}  // namespace

bool computes(Verb verb) {
  return verb == Verb::forward || verb == Verb::backward || verb == Verb::backward_input ||
         verb == Verb::backward_weight;
}

Partners match_messages(const Schedule& schedule) {
  Partners partners;
  for (const auto& actions : schedule.ranks) partners.emplace_back(actions.size(), -1);
  const std::vector<Posted> sends = posted(schedule, Verb::send), recvs = posted(schedule, Verb::recv);
  for (size_t s = 0, r = 0; s < sends.size() && r < recvs.size();) {
    if (sends[s].key() < recvs[r].key()) {
      ++s;
    } else if (recvs[r].key() < sends[s].key()) {
      ++r;
    } else {
      partners[sends[s].from][sends[s].index] = recvs[r].index;
      partners[recvs[r].to][recvs[r].index] = sends[s].index;
      ++s, ++r;
    }
  }
  return partners;
}

std::vector<int> walk(const Schedule& schedule, const Partners& partners,
                      const std::function<void(int, int)>& visit) {
  const int ranks = int(schedule.ranks.size());
  std::vector<int> next(ranks, 0), runnable;
  std::vector<bool> waits(ranks, false);
  for (int r = ranks - 1; r >= 0; --r) runnable.push_back(r);

  while (!runnable.empty()) {
    const int r = runnable.back();
    runnable.pop_back();
    while (next[r] < int(schedule.ranks[r].size())) {
      const Action& action = schedule.ranks[r][next[r]];
      const int partner = partners[r][next[r]];
      const bool sent = partner >= 0 && next[action.peer] > partner;
      if (action.verb == Verb::recv && !sent) {
        waits[r] = true;
        break;
      }
      visit(r, next[r]++);
      if (action.verb == Verb::send && waits[action.peer]) {
        waits[action.peer] = false;  // it looks again; what it waits for may still be another message
        runnable.push_back(action.peer);
      }
    }
  }
  return next;
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

  const std::vector<int> reached = walk(schedule, partners, [&](int r, int i) {
    const Action& action = schedule.ranks[r][i];
    if (action.verb == Verb::recv)
      raise_to(now[r], travelling.extract({action.peer, partners[r][i]}).mapped());
    now[r][r] = i + 1;
    if (action.verb == Verb::send) travelling.emplace(std::pair(r, i), now[r]);
    if (!computes(action.verb)) return;
    row_[r][i] = int(clocks_.size() / ranks);
    clocks_.insert(clocks_.end(), now[r].begin(), now[r].end());
  });
  check_all_reached(schedule, reached);
}

bool HappensBefore::operator()(int rank, int index, int later_rank, int later_index) const {
  const int row = row_[later_rank][later_index];
  ANTICHAIN_CHECK(row >= 0, "clocks are kept for compute actions only");
  const bool itself = rank == later_rank && index == later_index;
  return !itself && clocks_[size_t(row) * row_.size() + rank] > index;
}

}  // namespace antichain
