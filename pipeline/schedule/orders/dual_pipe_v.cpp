// In DualPipeV a rank computes, in the middle of a step, a forward and a backward as one pair, so that the
// messages of one can travel while the rank computes the other.
//
// DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, has DualPipe; its V-shaped form with these eight phases
// is in their repository DualPipe, 2025.
#include <algorithm>
#include <deque>

#include "pipeline/schedule/orders/orders.h"
#include "pipeline/schedule/orders/vee.h"

namespace antichain::orders {
namespace {

// Adds fused pairs, and weight halves that are done later, the oldest first.
class DualPipeList : public VeeList {
 public:
  using VeeList::VeeList;

  void pair(int forward_chunk, int backward_chunk) {
    order.pairs.push_back(order.actions.size());
    forward(forward_chunk), backward(backward_chunk);
  }
  void backward_weight_later(int chunk) {
    input_half(chunk);
    late_.push_back(chunk);
  }
  void oldest_weight_half() {
    weight_half(late_.front());
    late_.pop_front();
  }

 private:
  std::deque<int> late_;  // chunks of weight halves to be done
};

ComputeOrder phases(const RankSeats& of_rank, int p) {
  const int r = of_rank.front().stage, m = of_rank.front().microbatches, rest = p - r - 1;
  DualPipeList list(of_rank);
  for (int n = 0; n < 2 * rest; ++n) list.forward(0);
  for (int n = 0; n < r + 1; ++n) list.forward(0), list.forward(1);
  for (int n = 0; n < rest; ++n) {
    list.backward_weight_later(1);
    list.oldest_weight_half();
    list.forward(1);
  }
  for (int n = 0; n < m - 2 * p + r + 1; ++n) {
    if (n == 0 && rest == 0)  // the last rank has nothing to overlap with yet
      list.forward(0), list.backward(1);
    else
      list.pair(0, 1);
    list.pair(1, 0);
  }
  for (int n = 0; n < rest; ++n) {
    list.backward(1);
    list.pair(1, 0);
  }
  // From the middle on, weight halves are put off.
  for (int n = 0, middle = r + 1; n < 2 * (r + 1); ++n) {
    const int chunk = n % 2 == 0 ? 1 : 0;
    if (n < middle)
      list.backward(chunk);
    else
      list.backward_weight_later(chunk);
  }
  for (int n = 0; n < rest; ++n) {
    list.oldest_weight_half();
    list.backward_weight_later(0);
  }
  for (int n = 0; n < r + 1; ++n) list.oldest_weight_half();
  return list.order;
}

}  // namespace

ComputeOrders dual_pipe_v(const Seats& seats) {
  ComputeOrders all;
  for (const RankSeats& of_rank : seats) all.push_back(phases(of_rank, int(seats.size())));
  return all;
}

int two_a_rank(int microbatches, int ranks) { return std::max(microbatches, 2 * ranks); }

}  // namespace antichain::orders
