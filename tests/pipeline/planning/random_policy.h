// These policies have random orders of F, B, I and W that never deadlock, another one for every seed.
//
// Each micro-batch m has a time at which its gradient action comes, on stage s m + lead(s) and some delay.
// Leads fall from stage to stage and delays are the same on all, so a stage asks for no gradient before the
// next one has what it needs for it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "pipeline/schedule/orders/each_rank.h"
#include "pipeline/schedule/policy.h"

namespace antichain::test {

inline unsigned random_order_seed = 0;  // what orders are drawn from: a policy has none of its own

inline unsigned drawn(int what, int which, int below) {
  unsigned x = random_order_seed * 2654435761u + unsigned(what) * 40503u + unsigned(which) * 2246822519u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return x % unsigned(below);
}

inline bool drawn_halves(int microbatch) { return drawn(1, microbatch, 3) > 0; }

inline std::vector<Action> random_order(const RankSeats& of_rank) {
  const Seat& seat = of_rank.front();
  const int lead = 1 + int(drawn(2, 0, 3)) * (seat.devices_left - 1) / 2;
  std::vector<std::pair<double, Action>> timed;  // forwards and gradients by their times
  double last = 0;
  for (int m = 0; m < seat.microbatches; ++m) {
    last = std::max(last + 1e-3, m + lead - 0.5 + 0.9 * drawn(3, m, 4));
    if (m % seat.replicas != seat.replica) continue;
    timed.push_back({double(m), {Verb::forward, seat.stage, m}});
    timed.push_back({last, {drawn_halves(m) ? Verb::backward_input : Verb::backward, seat.stage, m}});
  }
  std::stable_sort(timed.begin(), timed.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<Action> order;
  std::vector<int> late;  // micro-batches whose weight half is still to come
  const auto catch_up = [&](size_t but) {
    for (; late.size() > but; late.erase(late.begin()))
      order.push_back({Verb::backward_weight, seat.stage, late.front()});
  };
  for (const auto& [time, action] : timed) {
    if (action.verb == Verb::backward) catch_up(0);  // weight gradients accumulate in micro-batch order
    order.push_back(action);
    if (action.verb == Verb::backward_input) late.push_back(action.microbatch);
    catch_up(drawn(4, action.microbatch + 100 * seat.stage, 4));
  }
  catch_up(0);
  return order;
}

inline Policy random_policy(unsigned seed) {
  random_order_seed = seed;
  return {.name = "random",
          .halves = true,
          .orders = orders::each_rank<random_order>,
          .in_flight = all_in_flight};
}

// Returns a usual policy or a random one.
inline Policy some_policy(unsigned seed) {
  if (seed % 4 == 3) return random_policy(seed);
  return seed % 4 == 2 ? Policy::zero_bubble_h1 : seed % 4 == 1 ? Policy::gpipe : Policy::one_f_one_b;
}

}  // namespace antichain::test
