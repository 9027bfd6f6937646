// These are the orders and the delays of asynchronous policies. Each stage has its own ranks, which do 1F1B
// over all steps, or one rank has all stages and shows what the same training gives without a pipeline.
//
//   one rank, 2 stages, M = 2
//   0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1
//
// With replicas a rank has one micro-batch more in flight than its part of all those of the next stage. So
// the next stage's forwards are there before it has ended the backwards that let this stage go on. Without
// replicas these are as many as in 1F1B.
#include <algorithm>
#include <map>

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

// Returns by stage how many micro-batches each of its ranks has in flight. They are at most those of a step,
// because no older weights than those of the step before are kept for stages with replicas.
std::map<int, int> leads(const Seats& seats) {
  std::map<int, int> leads;
  for (const RankSeats& of_rank : seats) leads[of_rank.front().stage] = of_rank.front().replicas;
  const Seat& any = seats.front().front();
  int of_next = 0;
  for (auto stage = leads.rbegin(); stage != leads.rend(); ++stage) {
    const int replicas = stage->second;
    int& lead = stage->second = (of_next + replicas - 1) / replicas + 1;
    if (of_next > 0 && any.microbatches_of_step() > 1 && any.steps > 1)
      lead = std::min(lead, any.microbatches_of_step() / replicas);
    of_next = lead * replicas;
  }
  return leads;
}

}  // namespace

ComputeOrders without_flush(const Seats& seats) {
  if (seats.size() == 1) return {one_after_the_other(seats.front())};
  std::map<int, int> leads = orders::leads(seats);
  ComputeOrders all;
  for (const RankSeats& of_rank : seats) {
    const Seat& seat = of_rank.front();
    all.push_back({forwards_ahead(seat, std::min(seat.count(), leads[seat.stage])), {}});
  }
  return all;
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
