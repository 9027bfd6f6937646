// V-Half and V-Min hold about a half and a third of the micro-batches that 1F1B holds.
//
// Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024. A building block says when one
// micro-batch is at which rank, in units of one F, I or W. The block is repeated every 6 units, which is what
// a micro-batch costs each rank: F, I and W of two chunks. The distance between a chunk's F and its I decides
// how many micro-batches are in flight.
//
//   V-Half, p = 4, one micro-batch; W is in free units
//   unit    0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25
//   rank 0  F0                            F1          I1                               I0
//   rank 1        F0                   F1                   I1                      I0
//   rank 2              F0          F1                            I1             I0
//   rank 3                    F0 F1                                     I1 I0
//
// The order of F and I on a rank is that of the repeated block. Then it is played with one unit each, every
// action as early as it can be: a W fills each unit in which the rank would wait, or in which it may begin no
// micro-batch because its memory is full. That squeezes the block's idle units out of warm-up and cool-down.
#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include "framework/error.h"
#include "pipeline/schedule/orders/orders.h"

namespace antichain::orders {
namespace {

constexpr int period = 6;

// A Block says when a micro-batch begins F0, F1, I1 and I0 on rank r.
using Block = std::array<int, 4>;
constexpr std::array<std::pair<Verb, int>, 4> passes = {
    {{Verb::forward, 0}, {Verb::forward, 1}, {Verb::backward_input, 1}, {Verb::backward_input, 0}}};

Block half_block(int p, int r) {
  const int k = p % 2 == 0 ? 3 : 0;
  return {2 * r, 3 * p - r - 2, 3 * p + k + 2 * r - 1, 6 * p + k - r - 2};
}
Block min_block(int p, int r) {
  const int k = p % 3 == 0 ? 2 : 0;
  return {r, 2 * p - 1 - r, 2 * p + k + r, 4 * p + k - r - 1};
}

// Returns the order of F and I, of a rank with these seats.
std::vector<Action> repeated(const Block& block, const RankSeats& of_rank) {
  std::vector<std::pair<int, Action>> timed;
  for (size_t i = 0; i < passes.size(); ++i)
    for (int m = 0; m < of_rank.front().microbatches; ++m)
      timed.push_back({block[i] + period * m, {passes[i].first, of_rank[size_t(passes[i].second)].stage, m}});
  std::ranges::stable_sort(timed, {}, [](const auto& at) { return at.first; });
  std::vector<Action> order;
  for (const auto& [time, action] : timed) order.push_back(action);
  return order;
}

// Plays the orders in units of time and puts weight halves in.
class WeightsInFreeUnits {
 public:
  // `limit`: how many forwards a rank may begin before it finishes the first one's weight half.
  WeightsInFreeUnits(std::vector<std::vector<Action>> orders, const Seats& seats, int limit)
      : limit_(limit), stages_(2 * int(seats.size())), microbatches_(seats.front().front().microbatches) {
    for (auto& order : orders) ranks_.push_back({.given = std::move(order)});
    for (auto* done : {&forward_, &input_half_})
      done->assign(size_t(stages_) * size_t(microbatches_), std::numeric_limits<int>::max());
  }

  ComputeOrders play() {
    for (int unit = 0, moved = 1; moved > 0; ++unit) {
      moved = 0;
      for (RankProgress& rank : ranks_) moved += take_one(rank, unit);
    }
    ComputeOrders all;
    for (RankProgress& rank : ranks_) {
      ANTICHAIN_CHECK(rank.next == rank.given.size() && rank.late.empty(), "the block's order never waits");
      all.push_back({std::move(rank.taken), {}});
    }
    return all;
  }

 private:
  struct RankProgress {
    std::vector<Action> given, taken;
    size_t next = 0;          // into given
    std::deque<Action> late;  // weight halves to be done
    int alive = 0;
  };

  int& end_of(Verb verb, int stage, int m) {
    return (verb == Verb::forward ? forward_
                                  : input_half_)[size_t(stage) * size_t(microbatches_) + size_t(m)];
  }
  bool ready(const RankProgress& rank, const Action& a, int unit) {
    if (a.verb == Verb::forward)
      return rank.alive < limit_ && (a.stage == 0 || end_of(a.verb, a.stage - 1, a.microbatch) <= unit);
    const bool last = a.stage + 1 == stages_;
    return (last ? end_of(Verb::forward, a.stage, a.microbatch)
                 : end_of(a.verb, a.stage + 1, a.microbatch)) <= unit;
  }

  // Returns whether the rank has computed anything.
  bool take_one(RankProgress& rank, int unit) {
    if (rank.next < rank.given.size() && ready(rank, rank.given[rank.next], unit)) {
      const Action& a = rank.taken.emplace_back(rank.given[rank.next++]);
      end_of(a.verb, a.stage, a.microbatch) = unit + 1;
      if (a.verb == Verb::forward)
        ++rank.alive;
      else
        rank.late.push_back({Verb::backward_weight, a.stage, a.microbatch});
      return true;
    }
    if (rank.late.empty()) return false;
    rank.taken.push_back(rank.late.front());
    rank.late.pop_front();
    --rank.alive;
    return true;
  }

  const int limit_, stages_, microbatches_;
  std::vector<RankProgress> ranks_;
  std::vector<int> forward_, input_half_;  // stage x micro-batch: the unit in which it has ended
};

ComputeOrders by_blocks(Block (*block)(int p, int r), const Seats& seats, int limit) {
  std::vector<std::vector<Action>> orders;
  for (const RankSeats& of_rank : seats)
    orders.push_back(repeated(block(int(seats.size()), of_rank.front().stage), of_rank));
  return WeightsInFreeUnits(std::move(orders), seats, limit).play();
}

}  // namespace

// A micro-batch counts twice: once for each of the rank's chunks.
ComputeOrders v_half(const Seats& seats) {
  return by_blocks(half_block, seats, 2 * ((int(seats.size()) + 2) / 2));
}
ComputeOrders v_min(const Seats& seats) {
  return by_blocks(min_block, seats, 2 * ((int(seats.size()) + 4) / 3));
}

}  // namespace antichain::orders
