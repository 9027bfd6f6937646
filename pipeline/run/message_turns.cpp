#include "pipeline/run/message_turns.h"

#include <algorithm>
#include <set>

#include "pipeline/schedule/lane.h"

namespace antichain {

std::vector<Turn> turns_of(const std::vector<int>& order, const std::vector<Action>& own,
                           const Channels& channels, int rank, const SumTurns& of_sum) {
  std::vector<Turn> turns;
  std::set<int> scattered;
  for (const int index : order) {
    const Action& a = own[size_t(index)];
    if (a.verb == Verb::reduce) {
      const std::vector<Turn> half = of_sum(std::max(a.bucket, 0), scattered.insert(index).second);
      turns.insert(turns.end(), half.begin(), half.end());
      continue;
    }
    const bool sends = a.verb == Verb::send;
    const int channel = sends ? channels(rank, a.peer, a.message) : channels(a.peer, rank, a.message);
    turns.push_back({sends, {channel, a.microbatch}, a.peer, 0, lane_of_flow(a.message.flow)});
  }
  return turns;
}

}  // namespace antichain
