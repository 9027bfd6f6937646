#include "pipeline/run/message_turns.h"
#include "pipeline/schedule/lane.h"

namespace antichain {

std::vector<Turn> turns_of(const std::vector<int>& order, const std::vector<Action>& own,
                           const Channels& channels, int rank, std::span<const Turn> of_sum) {
  std::vector<Turn> turns;
  for (const int index : order) {
    const Action& a = own[size_t(index)];
    if (a.verb == Verb::reduce) {
      turns.insert(turns.end(), of_sum.begin(), of_sum.end());
      continue;
    }
    const bool sends = a.verb == Verb::send;
    const int channel = sends ? channels(rank, a.peer, a.message) : channels(a.peer, rank, a.message);
    turns.push_back({sends, {channel, a.microbatch}, a.peer, 0, lane_of_flow(a.message.flow)});
  }
  return turns;
}

}  // namespace antichain
