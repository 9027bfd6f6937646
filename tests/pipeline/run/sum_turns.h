// These are the messages of an all-reduce as the runner names them (pipeline/run/replica_sum.h), of replicas
// that have no stage.
#pragma once

#include <algorithm>
#include <vector>

#include "pipeline/run/replica_sum.h"

namespace antichain::test {

// Returns the group of the replica `me` among `ranks` for one half of one bucket.
inline std::vector<Turn> sum_turns(const std::vector<int>& ranks, int me, int first_channel, int microbatches,
                                   bool statistics, int bucket, bool scatters) {
  std::vector<Turn> turns;
  const int replicas = int(ranks.size()), own = int(std::ranges::find(ranks, me) - ranks.begin());
  const auto add = [&](bool sends, SumChannel channel, int key, int replica) {
    const int group = 2 * bucket + (scatters ? 1 : 2);
    turns.push_back({sends, {first_channel + int(channel), key}, ranks[size_t(replica)], group});
  };
  for (const bool sends : {true, false})
    for (int replica = 0; replica < replicas; ++replica) {
      if (replica == own) continue;
      add(sends, scatters ? SumChannel::gradients : SumChannel::sums, bucket, replica);
      if (scatters && statistics && bucket == 0)
        for (int m = sends ? own : replica; m < microbatches; m += replicas)
          add(sends, SumChannel::statistics, m, replica);
    }
  return turns;
}

}  // namespace antichain::test
