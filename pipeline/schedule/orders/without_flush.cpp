// These are the orders and the delays of asynchronous policies. Each stage has its own rank, which does 1F1B
// over all steps, or one rank has all stages and shows what the same training gives without a pipeline.
//
//   one rank, 2 stages, M = 2
//   0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1
#include <algorithm>

#include "pipeline/schedule/orders/orders.h"

namespace antichain::orders {
namespace {

ComputeOrder one_after_the_other(const RankSeats& of_rank) {
  ComputeOrder order;
  for (int m = 0; m < of_rank.front().microbatches; ++m) {
    for (const Seat& seat : of_rank) order.actions.push_back({Verb::forward, seat.stage, m});
    for (auto seat = of_rank.rbegin(); seat != of_rank.rend(); ++seat)
      order.actions.push_back({Verb::backward, seat->stage, m});
  }
  return order;
}

}  // namespace

ComputeOrders without_flush(const Seats& seats) {
  return seats.size() == 1 ? ComputeOrders{one_after_the_other(seats.front())} : one_f_one_b(seats);
}

// PipeDream-2BW: all micro-batches of a step read the weights of the step before (Narayanan et al.,
// "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021).
int one_update(int, int) { return 1; }

// PipeDream: a stage begins as many mini-batches before it has updated by the first as there are stages
// behind it (Narayanan et al., SOSP 2019).
int stages_behind(int stage, int stages) { return stages - 1 - stage; }

int one_a_rank(int microbatches, int ranks) { return std::max(microbatches, ranks); }
int one_microbatch(int, int) { return 1; }

}  // namespace antichain::orders
