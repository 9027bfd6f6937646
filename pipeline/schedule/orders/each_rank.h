// In these orders what a rank does follows from its own seats.
#pragma once

#include "pipeline/schedule/compute_order.h"

namespace antichain::orders {

template <std::vector<Action> (*order)(const RankSeats&)>
ComputeOrders each_rank(const Seats& seats) {
  ComputeOrders all;
  for (const RankSeats& of_rank : seats) all.push_back({order(of_rank), {}});
  return all;
}

}  // namespace antichain::orders
