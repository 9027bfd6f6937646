// This file decides which action certainly happens before which, whatever the speed of ranks and links. Each
// rank does its list in order, every message is sent before it is received, replicas do an all-reduce
// together, and all ranks do a vote together.
//
// The deadlock check, the vector clocks, the simulator's links and the order of messages go through `walk`.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/schedule/schedule.h"

namespace antichain {

struct ActionPlace {
  int rank = 0, index = 0;  // in the rank's list
};

struct Partners {
  // of[rank][index] is, for a send, the index of its recv on the peer, and the reverse; for a reduce or a
  // vote, its meeting; and −1 for all other actions and for messages without a partner. The first send of a
  // message is matched with its first recv, and so on, and the first reduces of a bucket and the first votes
  // meet.
  std::vector<std::vector<int>> of;
  std::vector<std::vector<ActionPlace>> meetings;  // ranks ascending
};
// Throws Error when a peer is no rank.
Partners match_messages(const Schedule&);

// Calls visit(rank, index) for every action, in an order in which a send comes before its recv. Sends are
// posted, so only recvs, reduces and votes wait. When all ranks of a meeting have come to it, it calls
// meet(its places), then visits them. Returns per rank how many actions were reached; fewer than the rank has
// means a deadlock.
template <class Visit, class Meet>
std::vector<int> walk(const Schedule& schedule, const Partners& partners, Visit visit, Meet meet) {
  const int ranks = int(schedule.ranks.size());
  std::vector<int> next(ranks, 0), runnable, came(partners.meetings.size(), 0);
  std::vector<bool> waits(ranks, false);  // for a message
  for (int r = ranks - 1; r >= 0; --r) runnable.push_back(r);

  while (!runnable.empty()) {
    const int r = runnable.back();
    runnable.pop_back();
    while (next[r] < int(schedule.ranks[r].size())) {
      const Action& action = schedule.ranks[r][next[r]];
      const int partner = partners.of[r][next[r]];
      if (joins(action.verb)) {
        const std::vector<ActionPlace>& all = partners.meetings[partner];
        if (++came[partner] < int(all.size())) break;  // the last one to come goes on for all
        meet(all);
        for (const ActionPlace& place : all) {
          visit(place.rank, next[place.rank]++);
          if (place.rank != r) runnable.push_back(place.rank);
        }
        continue;
      }
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
template <class Visit>
std::vector<int> walk(const Schedule& schedule, const Partners& partners, Visit visit) {
  return walk(schedule, partners, visit, [](const std::vector<ActionPlace>&) {});
}

// Throws Error naming every rank that did not reach its end and the action that it waits in.
void check_all_reached(const Schedule&, const std::vector<int>& reached);

// These are vector clocks (Mattern, "Virtual Time and Global States of Distributed Systems", Parallel and
// Distributed Algorithms 1989; Fidge, "Timestamps in Message-Passing Systems That Preserve the Partial
// Ordering", 1988). They say, per action, how many actions of every rank are certainly done. They are kept
// for compute actions only, which is where memory is reused.
class HappensBefore {
 public:
  HappensBefore(const Schedule&, const Partners&);  // Error on a deadlock

  // Says whether action `index` of `rank` is done before compute action `later_index` of `later_rank` starts.
  bool operator()(int rank, int index, int later_rank, int later_index) const;

 private:
  std::vector<std::vector<int>> row_;  // [rank][index]: row of clocks_, −1 for actions that compute nothing
  std::vector<int32_t> clocks_;        // rows x ranks
};

}  // namespace antichain
