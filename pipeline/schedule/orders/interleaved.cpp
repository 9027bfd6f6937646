// This is interleaved 1F1B. A rank has v stages (chunks), p stages apart. Micro-batches go in groups of p: a
// group passes all chunks of a rank, forwards from the first to the last, backwards from the last to the
// first. The order is 1F1B's in these units: a rank begins 2 (p − r − 1) + (v − 1) p forwards ahead.
//
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC
// 2021.
#include <algorithm>

#include "pipeline/schedule/orders/each_rank.h"
#include "pipeline/schedule/orders/orders.h"

namespace antichain::orders {
namespace {

std::vector<Action> interleaved_of(const RankSeats& of_rank) {
  const Seat& first = of_rank.front();
  const int p = first.devices, r = first.stage, v = int(of_rank.size());
  const int units = v * first.microbatches;
  std::vector<Action> order;
  const auto add = [&](Verb verb, int unit) {
    const int chunk = unit % (p * v) / p;
    const int stage = of_rank[size_t(verb == Verb::forward ? chunk : v - 1 - chunk)].stage;
    order.push_back({verb, stage, unit / (p * v) * p + unit % p});
  };
  const int ahead = std::min(units, 2 * (p - r - 1) + (v - 1) * p);
  for (int unit = 0; unit < ahead; ++unit) add(Verb::forward, unit);
  for (int unit = 0; unit < units; ++unit) {
    if (ahead + unit < units) add(Verb::forward, ahead + unit);
    add(Verb::backward, unit);
  }
  return order;
}

}  // namespace

ComputeOrders interleaved(const Seats& seats) { return each_rank<interleaved_of>(seats); }

int whole_groups(int microbatches, int ranks) { return (microbatches + ranks - 1) / ranks * ranks; }

}  // namespace antichain::orders
