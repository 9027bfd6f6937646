// What a stage costs: every formula that planners, tables and proofs use, written once.
//
// All times are whole nanoseconds of one micro-batch, rounded once per node (per boundary for transfers):
// sums are exact, so "equal" means equal on every rank.
//
//   work       forward + backward of the stage's nodes, on its slowest device
//   gradient   a step's all-reduce, 2 (r − 1) / r x bytes / bytes_per_s, shared by the step's M micro-batches
//   stage      (work + (r − 1) gradient) / r: r replicas take micro-batches in turn
//   transfer   2 (tensors x latency + bytes / bytes_per_s): what crosses a boundary, there and back
//   memory     held + in flight x kept + (r − 1) / r weights
//     held     3 weights (weights, gradients, momentum) + what the engine prepares of them (copies in bf16)
//     kept     what forward keeps of one micro-batch for backward: the stash, and the output where some
//              backward re-reads it
//     the last is what the other replicas send of the gradients that this one adds up
#pragma once

#include <cstdint>

#include "partition/profile/cluster.h"
#include "partition/profile/profile.h"

namespace antichain {

int64_t work_ns(const NodeCost&, double speed);
int64_t gradient_ns(int64_t param_bytes, const Link&, int microbatches);
int64_t stage_ns(int64_t work_ns, int64_t gradient_ns, int replicas);  // rounded up
int64_t transfer_ns(int64_t bytes, int tensors, const Link&);

int64_t held_bytes(const NodeCost&);
int64_t kept_bytes(const NodeCost&);

// A stage's memory is made of these; the weights are counted once.
struct MemoryParts {
  int64_t held = 0, kept = 0, weights = 0;
};
// Of one of its devices, rounded up; and of all r, which is a sum over nodes without rounding.
int64_t memory_bytes(const MemoryParts&, int in_flight, int replicas);
int64_t memory_bytes_of_all(const MemoryParts&, int in_flight, int replicas);

// Which schedule the memory is for: how many micro-batches a rank has begun and not finished.
enum class InFlight {
  one_f_one_b,  // at most as many as there are devices from this stage on, shared by the stage's replicas
  all,          // GPipe: all M, shared by the stage's replicas
};
// `devices_left`: devices of this stage and all later ones.
int in_flight(InFlight, int microbatches, int devices_left, int replicas);

}  // namespace antichain
