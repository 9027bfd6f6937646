#include "pipeline/schedule/channels.h"

namespace antichain {

Channels::Channels(const Schedule& schedule) {
  for (int rank = 0; rank < int(schedule.ranks.size()); ++rank)
    for (const Action& action : schedule.ranks[rank])
      if (action.verb == Verb::send) number_[{rank, action.peer, action.message}] = 0;
  int next = 0;
  for (auto& [triple, number] : number_) number = next++;
}

}  // namespace antichain
