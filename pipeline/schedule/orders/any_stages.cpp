// These orders are for one stage a rank or several, placed in any way.
//
//   GPipe, S = 3, M = 4, on every stage
//   F0 F1 F2 F3 B0 B1 B2 B3
#include <algorithm>

#include "pipeline/schedule/orders/each_rank.h"
#include "pipeline/schedule/orders/orders.h"

namespace antichain::orders {
namespace {

void add_all(std::vector<Action>& order, Verb verb, const Seat& seat) {
  for (int n = 0; n < seat.count(); ++n) order.push_back({verb, seat.stage, seat.microbatch(n)});
}

// This is GPipe with the backwards of a stage ascending. Stages come one after the other, and back in
// reverse.
std::vector<Action> all_forwards_first_of(const RankSeats& of_rank) {
  std::vector<Action> order;
  for (const Seat& seat : of_rank) add_all(order, Verb::forward, seat);
  for (auto seat = of_rank.rbegin(); seat != of_rank.rend(); ++seat) add_all(order, Verb::backward, *seat);
  return order;
}

// Groups of one micro-batch a rank go through all stages of the rank before the next group begins. So the
// outputs of few micro-batches are held, and ranks wait only in the beginning.
std::vector<Action> only_forwards_of(const RankSeats& of_rank) {
  std::vector<Action> order;
  for (const Seat& seat : of_rank) add_all(order, Verb::forward, seat);
  const int group = of_rank.front().devices;
  std::ranges::stable_sort(order, {}, [=](const Action& a) { return a.microbatch / group; });
  return order;
}

}  // namespace

ComputeOrders all_forwards_first(const Seats& seats) { return each_rank<all_forwards_first_of>(seats); }
ComputeOrders only_forwards(const Seats& seats) { return each_rank<only_forwards_of>(seats); }
int one_in_flight(const PipelinePlace&) { return 1; }

}  // namespace antichain::orders
