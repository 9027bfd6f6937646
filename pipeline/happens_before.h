// Which action certainly happens before which, whatever the speed of ranks and links: each rank does its list in
// order, and every message is sent before it is received.
//
// Everything that interprets a whole schedule (deadlock check, clocks, simulator) goes through `walk`.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pipeline/schedule.h"

namespace antichain {

// partners[rank][index]: of a send, the index of its recv on the peer, and the reverse; −1 for all other actions
// and for messages without a partner. The first send of a message is matched with its first recv, and so on.
// Error when a peer is no rank.
using Partners = std::vector<std::vector<int>>;
Partners match_messages(const Schedule&);

// Calls visit(rank, index) for every action, in an order in which a send comes before its recv: sends are posted,
// so only recvs wait. Returns per rank how many actions were reached; fewer than it has means a deadlock.
std::vector<int> walk(const Schedule&, const Partners&,
                      const std::function<void(int rank, int index)>& visit);

// Error naming every rank that did not reach its end and the action it waits in.
void check_all_reached(const Schedule&, const std::vector<int>& reached);

// Vector clocks (Mattern, "Virtual Time and Global States of Distributed Systems", Parallel and Distributed
// Algorithms 1989; Fidge, "Timestamps in Message-Passing Systems That Preserve the Partial Ordering", 1988): per
// action, how many actions of every rank are certainly done. Kept for compute actions only, which is where memory
// is reused.
class HappensBefore {
 public:
  HappensBefore(const Schedule&, const Partners&);  // Error on a deadlock

  // Whether action `index` of `rank` is done before compute action `later_index` of `later_rank` starts.
  bool operator()(int rank, int index, int later_rank, int later_index) const;

 private:
  std::vector<std::vector<int>> row_;  // [rank][index]: row of clocks_, −1 for actions that compute nothing
  std::vector<int32_t> clocks_;        // rows x ranks
};

bool computes(Verb);  // forward, backward or a half of it

}  // namespace antichain
