// This schedule has no bubble in the memory of 1F1B: stages go along the ranks and back, so that a rank's two
// stages together keep as much as any other rank's two, and the first rank has the loss near at hand.
//
// Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, search such an order; this one is
// written down in phases. In the middle a rank repeats F0 I0 W0 F1 I1 W1: it begins a micro-batch whenever it
// has finished one. Before that it begins 2 (p − r) − 1 of them, then r pairs of F1 F0 while the first ones
// come back, then p − r groups of F1 I1 W1 while the rank waits for the first gradient of chunk 0. At the
// end, input halves come first, because other ranks wait for them.
//
//   p = 2, m = 4, by chunk
//   rank 0  F0 F0 F0 F1 I1 W1 F1 I1 W1 F0 I0 W0 F1 I1 W1 I0 W0 F1 I1 W1 I0 W0 I0 W0
//   rank 1  F0 F1 F0 F1 I1 W1 F0 I0 W0 F1 I1 W1 F0 I0 W0 F1 I1 W1 I0 I1 I0 W0 W1 W0
//
// With equal times of F, I and W, messages that take no time and m >= 2 p − 1, no rank waits between its
// first action and its last, and at most p micro-batches are in flight on every rank.
#include <algorithm>

#include "pipeline/schedule/orders/orders.h"
#include "pipeline/schedule/orders/vee.h"

namespace antichain::orders {
namespace {

// For m micro-batches, at least 2 p − 1 of them.
ComputeOrder phases(const RankSeats& of_rank, int p, int m) {
  const int r = of_rank.front().stage;
  VeeList list(of_rank);
  const auto all_of_1 = [&] { list.forward(1), list.input_half(1), list.weight_half(1); };
  for (int n = 0; n < 2 * (p - r) - 1; ++n) list.forward(0);
  for (int n = 0; n < r; ++n) list.forward(1), list.forward(0);
  for (int n = 0; n < p - r; ++n) all_of_1();
  while (list.forwards(1) < m) {
    if (list.forwards(0) < m) list.forward(0);
    list.input_half(0), list.weight_half(0);
    all_of_1();
  }
  for (int n = 0; n < r; ++n) list.input_half(0), list.input_half(1);
  for (int n = 0; n < p - r; ++n) list.input_half(0), list.weight_half(0);
  for (const int chunk : {1, 0})
    while (list.weights(chunk) < m) list.weight_half(chunk);
  return list.order;
}

}  // namespace

// The order for fewer micro-batches is that for 2 p − 1 without the others.
ComputeOrders zero_bubble_v(const Seats& seats) {
  const int p = int(seats.size()), m = seats.front().front().microbatches;
  ComputeOrders all;
  for (const RankSeats& of_rank : seats) {
    all.push_back(phases(of_rank, p, std::max(m, 2 * p - 1)));
    std::erase_if(all.back().actions, [=](const Action& a) { return a.microbatch >= m; });
  }
  return all;
}

}  // namespace antichain::orders
