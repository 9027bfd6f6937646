// These are the messages of an all-reduce as the runner names them (pipeline/run/replica_sum.h), of replicas
// that have no stage.
#pragma once

#include <algorithm>
#include <vector>

#include "pipeline/run/replica_sum.h"

namespace antichain::test {

// Of the replica `me` among `ranks`: two groups, 1 and 2.
inline std::vector<Turn> sum_turns(const std::vector<int>& ranks, int me, int first_channel, int microbatches,
                                   bool statistics) {
  std::vector<Turn> turns;
  const int replicas = int(ranks.size()), own = int(std::ranges::find(ranks, me) - ranks.begin());
  const auto add = [&](bool sends, SumChannel channel, int microbatch, int replica, int group) {
    turns.push_back({sends, {first_channel + int(channel), microbatch}, ranks[size_t(replica)], group});
  };
  for (const int group : {1, 2})
    for (const bool sends : {true, false})
      for (int replica = 0; replica < replicas; ++replica) {
        if (replica == own) continue;
        add(sends, group == 1 ? SumChannel::gradients : SumChannel::sums, 0, replica, group);
        if (group == 1 && statistics)
          for (int m = sends ? own : replica; m < microbatches; m += replicas)
            add(sends, SumChannel::statistics, m, replica, group);
      }
  return turns;
}

}  // namespace antichain::test
