// These orders are for one stage a rank. There are S stages, of which s is one, and M micro-batches.
//
//   1F1B, S = 3, M = 4
//   stage 0  F0 F1 F2 B0 F3 B1 B2 B3
//   stage 1  F0 F1 B0 F2 B1 F3 B2 B3
//   stage 2  F0 B0 F1 B1 F2 B2 F3 B3
//
// Replicas do the same with their part. Here the first stage is on two devices, the second on one, and M = 5:
//
//   stage 0  F0 F2 B0 F4 B2 B4          2 of each in flight: 3 devices from here on, shared by 2 replicas
//            F1 F3 B1 B3
//   stage 1  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
#include <algorithm>

#include "pipeline/schedule/orders/each_rank.h"
#include "pipeline/schedule/orders/orders.h"

namespace antichain::orders {

std::vector<Action> forwards_ahead(const Seat& seat, int lead) {
  std::vector<Action> order;
  const int count = seat.count();
  order.reserve(2 * size_t(count));
  const auto add = [&](Verb verb, int n) { order.push_back({verb, seat.stage, seat.microbatch(n)}); };
  for (int n = 0; n < lead; ++n) add(Verb::forward, n);
  for (int n = 0; n < count; ++n) {
    add(Verb::backward, n);
    if (n + lead < count) add(Verb::forward, n + lead);
  }
  return order;
}

namespace {

// This is the order of Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP
// 2019, made synchronous by a flush. The replicas of a stage together begin at least as many micro-batches as
// there are devices left: each begins one more than all the next stage may ask for, so that nobody waits
// forever.
std::vector<Action> one_f_one_b_of(const RankSeats& of_rank) {
  const Seat& seat = of_rank.front();
  const int lead = one_f_one_b_in_flight({seat.microbatches, seat.devices, seat.devices_left, seat.replicas});
  return forwards_ahead(seat, std::min(seat.count(), lead));
}

// Does forwards as 1F1B with a warm-up of its own, and input halves in place of backwards. A weight half
// follows each input half as soon as `held` micro-batches are held for theirs; the others come at the end.
//
//   ZB-H1, S = 3, M = 4
//   stage 0  F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3
//   stage 1  F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   stage 2  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
std::vector<Action> weights_later(const Seat& seat, int warm_up, int held) {
  std::vector<Action> order;
  int forwards = 0, weights = 0;
  const auto add = [&](Verb verb, int m) { order.push_back({verb, seat.stage, m}); };
  while (forwards < std::min(warm_up, seat.microbatches)) add(Verb::forward, forwards++);
  warm_up = forwards;
  for (int m = 0; m < seat.microbatches; ++m) {
    if (forwards < seat.microbatches) add(Verb::forward, forwards++);
    add(Verb::backward_input, m);
    if (warm_up + m >= held) add(Verb::backward_weight, weights++);
  }
  while (weights < seat.microbatches) add(Verb::backward_weight, weights++);
  return order;
}

// Every rank has as many micro-batches in flight as 1F1B has on its fullest.
std::vector<Action> zero_bubble_h1_of(const RankSeats& of_rank) {
  const Seat& seat = of_rank.front();
  return weights_later(seat, seat.devices_left - 1, seat.devices - 1);
}

// Ranks have about twice as many. Then none waits from its first forward to its last weight half, where
// forwards, input halves and weight halves take equal times.
std::vector<Action> zero_bubble_h2_of(const RankSeats& of_rank) {
  const Seat& seat = of_rank.front();
  return weights_later(seat, 2 * (seat.devices_left - 1), 2 * (seat.devices - 1));
}

}  // namespace

ComputeOrders one_f_one_b(const Seats& seats) { return each_rank<one_f_one_b_of>(seats); }
ComputeOrders zero_bubble_h1(const Seats& seats) { return each_rank<zero_bubble_h1_of>(seats); }
ComputeOrders zero_bubble_h2(const Seats& seats) { return each_rank<zero_bubble_h2_of>(seats); }

int zero_bubble_h1_in_flight(const PipelinePlace& at) { return std::min(at.microbatches, at.devices); }
int zero_bubble_h2_in_flight(const PipelinePlace& at) {
  return std::min(at.microbatches, 2 * at.devices - 1);
}

}  // namespace antichain::orders
