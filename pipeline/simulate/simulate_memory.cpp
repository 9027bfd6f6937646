// Computes the peak memory of each rank from the schedule's slots and the profile's bytes. A stage in
// training holds
//
//   weights              held_bytes: the weights, their gradients, what the optimiser keeps beside them, and
//                        what the engine prepares of them (copies in bf16)
//   stash                stash_bytes x in flight
//   kept or sent output  output_bytes x max(in flight, if some backward re-reads it; sent_activations, if it
//                        is sent)
//   loaded input         output_bytes x in flight
//   received activation  output_bytes x (in flight + 1)     receives are posted one micro-batch ahead
//   received gradient    output_bytes x (received_gradients + 1)
//   sent gradient        output_bytes x sent_gradients
//   shared tensor        output_bytes x shared_outputs or shared_gradients, for a tensor that another stage
//                        of the same rank uses: it is neither sent nor received
//   passing tensors      the most bytes that live at once among outputs that are neither kept nor sent (from
//                        their node's forward to their last consumer's), gradients (from the first consumer's
//                        backward to their node's), and what the other replicas send of the part of each
//                        bucket of weight gradients that this one adds up (from the end of the bucket's
//                        backward to the end of all backwards): they share one piece of memory, and so do the
//                        stages of a rank
//
// A stage never has more slots than the rank has micro-batches. Evaluation keeps no stash, no gradients and
// nothing of the optimiser. Kernels' scratch, statistics of single micro-batches and the loader's samples are
// not included.
#include <algorithm>
#include <numeric>
#include <set>

#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

// Passing adds up bytes that live only within one forward and one backward. Call i is the forward of the i-th
// of n nodes, call 2n − 1 − i is its backward, and call 2n is the all-reduce.
class Passing {
 public:
  explicit Passing(int nodes) : change_(2 * nodes + 2, 0) {}
  void lives(int first, int last, int64_t bytes) { change_[first] += bytes, change_[last + 1] -= bytes; }
  int64_t most() {
    std::partial_sum(change_.begin(), change_.end(), change_.begin());
    return *std::max_element(change_.begin(), change_.end());
  }

 private:
  std::vector<int64_t> change_;
};

class StageBytes {
 public:
  StageBytes(const Profile& profile, const Crossing& crossing, const Plan& plan, const Seat& seat,
             const std::vector<Action>& of_rank, const Slots& slots, bool training)
      : profile_(profile),
        crossing_(crossing),
        actions_(of_rank),
        stage_(seat.stage),
        nodes_(plan.stages[stage_].nodes),
        slots_(slots),
        microbatches_(seat.count()),
        others_(seat.replicas - 1),
        training_(training),
        consumers_(profile.consumers()),
        stage_of_(plan.stage_of(int(profile.nodes.size()))),
        position_(profile.nodes.size(), -1),
        near_(size_t(crossing.stages())),
        far_(near_) {
    for (size_t i = 0; i < nodes_.size(); ++i) position_[nodes_[i]] = int(i);
    const int rank = crossing.ranks[stage_][seat.replica];
    for (int s = 0; s < crossing.stages(); ++s)
      for (int n = 0; n < seat.count(); ++n)
        (s != stage_ && crossing.rank_of(s, seat.microbatch(n)) == rank ? near_ : far_)[s] = true;
    far_[stage_] = false;
  }

  // Returns the bytes of what lives longer.
  int64_t bytes() const {
    int64_t sum = inputs() + messages();
    for (int n : nodes_) sum += own(n);
    return sum;
  }
  // Returns the bytes of tensors that live only within one forward and one backward.
  int64_t passing() const {
    const int n = int(nodes_.size());
    Passing passing(n);
    for (int i = 0; i < n; ++i) {
      const int node = nodes_[i];
      int last = i, first_gradient = 2 * n - 1 - i;
      for (int c : consumers_[node])
        if (local(c))
          last = std::max(last, position_[c]),
          first_gradient = std::min(first_gradient, 2 * n - 1 - position_[c]);
      if (!kept(node) && !sent(node) && users(node).empty()) passing.lives(i, last, output_bytes(node));
      if (training_ && profile_.nodes[node].needs_gradient && !consumers_[node].empty())
        passing.lives(first_gradient, 2 * n - 1 - i, output_bytes(node) * std::max(1, slots_.held_gradients));
    }
    if (training_ && others_ > 0)
      for (const GradientBucket& bucket :
           gradient_buckets(profile_, nodes_, std::max(1, buckets_in(actions_, stage_))))
        passing.lives(2 * n - bucket.first, 2 * n, others_ * bucket.bytes / (others_ + 1));
    return passing.most();
  }

 private:
  int64_t output_bytes(int n) const { return profile_.nodes[n].cost.output_bytes; }
  int64_t at_most_all(int slots) const { return std::min(slots, microbatches_); }
  bool local(int n) const { return position_[n] >= 0; }
  bool kept(int n) const { return training_ && profile_.nodes[n].cost.keeps_output; }
  bool sent(int n) const {
    return std::any_of(consumers_[n].begin(), consumers_[n].end(), [&](int c) { return far_[stage_of_[c]]; });
  }
  // The other stages of the rank that use the node's output.
  std::vector<int> users(int n) const {
    std::set<int> stages;
    for (int c : consumers_[n])
      if (near_[stage_of_[c]]) stages.insert(stage_of_[c]);
    return {stages.begin(), stages.end()};
  }

  // Returns the bytes of weights, stash, and the output where it outlives the forward.
  int64_t own(int n) const {
    const NodeCost& cost = profile_.nodes[n].cost;
    const int slots = std::max({kept(n) ? slots_.microbatches : 0, sent(n) ? slots_.sent_activations : 0,
                                shared_outputs(actions_, stage_, users(n), kept(n))});
    const int64_t stash = training_ ? cost.stash_bytes * slots_.microbatches : 0;
    const int64_t weights = training_ ? held_bytes(cost) : cost.param_bytes + cost.prepared_bytes;
    return weights + stash + cost.output_bytes * slots;
  }

  int64_t inputs() const {
    std::set<int> used;
    for (int n : nodes_)
      for (int x : profile_.nodes[n].inputs)
        if (profile_.nodes[x].role == Role::input) used.insert(x);
    int64_t sum = 0;
    for (int x : used) sum += output_bytes(x) * slots_.microbatches;
    return sum;
  }

  int64_t messages() const {
    int64_t sum = 0;
    for (const Route& route : crossing_.activations)
      if (route.to_stage == stage_ && far_[route.from_stage])
        sum += output_bytes(route.message.tensor) * at_most_all(slots_.microbatches + 1);
    if (!training_) return sum;
    for (const Route& route : crossing_.gradients) {
      const int64_t bytes = output_bytes(route.message.tensor);
      if (route.to_stage == stage_) {
        if (far_[route.from_stage]) sum += bytes * at_most_all(slots_.received_gradients + 1);
        if (near_[route.from_stage]) sum += bytes * shared_gradients(actions_, stage_, {route.from_stage});
      }
      if (route.from_stage == stage_ && far_[route.to_stage]) sum += bytes * slots_.sent_gradients;
    }
    return sum;
  }

  const Profile& profile_;
  const Crossing& crossing_;
  const std::vector<Action>& actions_;  // of the rank
  const int stage_;
  const std::vector<int>& nodes_;
  const Slots& slots_;
  const int microbatches_;  // of this seat
  const int64_t others_;    // replicas
  const bool training_;
  const std::vector<std::vector<int>> consumers_;
  const std::vector<int> stage_of_;
  std::vector<int> position_;     // in nodes_, −1 for other stages' nodes
  std::vector<bool> near_, far_;  // the other stages, by whether this rank or another one has their part
};

}  // namespace

std::vector<int64_t> peak_memory_bytes(const Schedule& schedule, const Plan& plan, const Profile& profile) {
  validate(schedule, profile, plan);
  const Crossing crossing = crossing_of(profile, plan);
  const std::vector<RankSlots> all = slots(schedule);
  const std::vector<std::vector<Seat>> by_rank = seats(crossing.ranks, schedule.microbatches);
  std::vector<int64_t> bytes;
  for (size_t r = 0; r < by_rank.size(); ++r) {
    int64_t sum = 0, passing = 0;
    for (const Seat& seat : by_rank[r]) {
      const StageBytes stage(profile, crossing, plan, seat, schedule.ranks[r], all[r].at(seat.stage),
                             learns(schedule));
      sum += stage.bytes();
      passing = std::max(passing, stage.passing());
    }
    bytes.push_back(sum + passing);
  }
  return bytes;
}

}  // namespace antichain
