// A policy decides in which order each rank computes. Everything else of a schedule follows from that order.
#pragma once

#include <cstddef>
#include <vector>

#include "pipeline/schedule/schedule.h"

namespace antichain {

// A seat is a rank's place in a stage: it says which micro-batches of the stage the rank does. Replicas of a
// stage take turns (1F1B-RR of Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN
// Training", SOSP 2019): replica i does the micro-batches i, i + replicas, i + 2 replicas, … A rank has one
// seat, or several where the plan gives it several stages.
struct Seat {
  int stage = 0, replica = 0, replicas = 1;
  int devices = 1;       // ranks that the plan has
  int devices_left = 1;  // ranks that have this stage or a later one
  int microbatches = 0;  // of all steps
  int steps = 1;         // of the schedule
  int microbatches_of_step() const { return microbatches / steps; }
  int count() const { return (microbatches - replica + replicas - 1) / replicas; }
  int microbatch(int n) const { return replica + n * replicas; }  // the seat's n-th
};
using RankSeats = std::vector<Seat>;   // of one rank, ascending by stage
using Seats = std::vector<RankSeats>;  // per rank

// Returns the seats of every rank. `ranks` are those of every stage.
Seats seats(const std::vector<std::vector<int>>& ranks, int microbatches, int steps = 1);
// Returns the seats of a rank. Throws Error when the plan gives it none.
RankSeats seats_of(const Plan&, int rank, int microbatches);
// Returns the only seat of a rank. Throws Error when the plan gives it none, or several.
Seat seat_of(const Plan&, int rank, int microbatches);

// A ComputeOrder has the forwards and backwards of one rank.
struct ComputeOrder {
  std::vector<Action> actions;
  // `pairs` has the indices of forwards that begin a fused pair. A fused pair is a forward of one stage and,
  // right after it, the backward of another one. It begins when the inputs of both are there.
  std::vector<size_t> pairs;
};
using ComputeOrders = std::vector<ComputeOrder>;  // per rank

}  // namespace antichain
