// This file has every formula for what a stage costs. Planners, tables and proofs use these.
//
// All times are whole nanoseconds of one micro-batch. They are rounded once per node (per boundary for
// transfers), so sums are exact, and "equal" means equal on every rank.
//
//   work       forward + backward of the stage's nodes, and forward again of those that are recomputed, on
//              its slowest device
//   all-reduce 2 (r − 1) / r x bytes / bytes_per_s
//   gradient   a step's all-reduce, shared by the step's M micro-batches; (r − 1) / r is in `stage`
//   stage      (work + (r − 1) gradient) / r: r replicas take micro-batches in turn
//   transfer   2 (tensors x latency + bytes / bytes_per_s): what crosses a boundary, there and back
//   load       stage + sent, or the larger of them where a device sends while it computes
//     sent     latency + bytes / bytes_per_s of each tensor that comes in or goes out, one way, once however
//              many other devices have it; nothing for what passes by. A host, which has them all, sends
//              nothing (Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators",
//              NeurIPS 2020)
//   memory     held + in flight x kept + again + (r − 1) / r weights
//     held     what training holds of the weights + those that are frozen + what the engine prepares of them
//              (copies in bf16)
//     kept     what forward keeps of one micro-batch for backward: the stash, and the output where some
//              backward re-reads it. Where a stage recomputes nodes, working_set.h says what it keeps
//     again    the largest working set of what is computed again, with gradients in flight (working_set.h)
//     the last is what the other replicas send of the gradients that this one adds up
//   sharded    where replicas share out the optimiser's state (ZeRO-1), each holds 1 / r of the slots, but
//              for weights that several nodes have. It updates 1 / r of the weights, after a half of the
//              all-reduce, and sends them in the other half
//   shared     of a weight that several nodes of the stage have, it holds weight and slots once, and each
//              node's gradient. A stage without the first of all nodes that have it updates a copy, which
//              takes as long as the first one's update
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "partition/plan/objective.h"
#include "partition/profile/cluster.h"
#include "partition/profile/profile.h"

namespace antichain {

struct WorkingSet;

// Returns the seconds that one copy of the weights takes among r replicas. Every replica sends and receives
// its part of them twice, once to add up and once to spread the sums. No all-reduce moves less (Patarasuk and
// Yuan, "Bandwidth Optimal All-Reduce Algorithms for Clusters of Workstations", Journal of Parallel and
// Distributed Computing 2009).
double all_reduce_s(int64_t param_bytes, int replicas, const Link&);

int64_t work_ns(const NodeCost&, double speed);
// Returns the time of a node on a device whose times these are. One that is barred there takes barred_ns,
// which is longer than any stage that is allowed.
constexpr int64_t barred_ns = int64_t(1) << 40;
int64_t work_ns(const Profile& times, int node, double speed);
int64_t gradient_ns(int64_t param_bytes, const Link&, int microbatches);
// The first function is for one of r replicas, rounded up. The second is what all r take together, a sum over
// nodes without rounding.
int64_t stage_ns(int64_t work_ns, int64_t gradient_ns, int replicas);
constexpr int64_t stage_ns_of_all(int64_t work_ns, int64_t gradient_ns, int replicas) {
  return work_ns + (replicas - 1) * gradient_ns;
}
// Returns one replica's part of what all r take, rounded up.
constexpr int64_t of_one_replica(int64_t of_all, int replicas) { return (of_all + replicas - 1) / replicas; }
int64_t transfer_ns(int64_t bytes, int tensors, const Link&);
int64_t sent_ns(int64_t bytes, const Link&);  // of one tensor, one way
constexpr int64_t load_ns(Objective objective, int64_t stage_ns, int64_t sent_ns) {
  return objective == Objective::load ? stage_ns + sent_ns : std::max(stage_ns, sent_ns);
}

// Returns what training holds of weights: the weights, their gradients, and what the optimiser keeps beside
// them (its slots).
template <class Bytes>
constexpr Bytes trained_bytes(Bytes weights, Bytes slots) {
  return 2 * weights + slots;
}
int64_t held_bytes(const NodeCost&);
int64_t kept_bytes(const NodeCost&);

// Calls visit(use, again) for every use of a shared weight by these nodes (ascending): `again` says that an
// earlier one of them has it, too.
void for_each_shared(const Profile&, const std::vector<int>& nodes,
                     const std::function<void(const SharedUse&, bool again)>& visit);
// Return what the nodes count of shared weights and need not hold: weights, and slots as well if they train.
int64_t held_once_bytes(const Profile&, const std::vector<int>& nodes, bool trains);

// A StageSum adds up the nodes of a stage on one kind of device. Memory is what the formula above is made of,
// the weights counted once.
struct StageSum {
  bool barred = false;    // whether the device can't have some node
  double overhead_s = 0;  // of each forward or backward action, which is the stage's and no node's
  double forward_s = 0, backward_s = 0, update_s = 0;
  double backward_input_s = 0, late_weight_s = 0;  // the halves of backward_s as actions of their own
  int64_t param_bytes = 0, held_bytes = 0, kept_bytes = 0;
  int64_t again_bytes = 0;
  int64_t slot_bytes = 0;  // of what is held: what replicas may share out

  void add(const StageSum&);
};
// Bytes are those of the network's own profile, and times those of the kind's, here and below.
StageSum sum_of(const ProfileNode& own, const ProfileNode& times);
// Makes the sum of a stage that recomputes nothing that of one which has this working set.
void add_recomputed(StageSum&, const WorkingSet&);
StageSum sum_of(const Profile& own, const Profile& times, const std::vector<int>& nodes,
                const std::vector<int>& recomputed = {});
inline StageSum sum_of(const Profile& own, const std::vector<int>& nodes,
                       const std::vector<int>& recomputed = {}) {
  return sum_of(own, own, nodes, recomputed);
}

// The first function returns the bytes of one of the stage's devices, rounded up. The second returns those of
// all its devices, a sum over nodes without rounding.
int64_t memory_bytes(const StageSum&, int in_flight, int replicas, bool sharded = false);
int64_t memory_bytes_of_all(const StageSum&, int in_flight, int replicas, bool sharded = false);

// Returns the slots of a node that replicas may share out: not those of weights that several nodes have.
int64_t slots_to_share_out(const ProfileNode&);

// UpdateTimes are those of a stage's replicas between their last backward and the next step.
struct UpdateTimes {
  double reduce_s = 0;    // adding up the gradients, beside the last backward
  double work_s = 0;      // the update itself, on a device of speed 1
  double gather_s = 0;    // sending the weights after the update
  double core_share = 0;  // of the link
  // Returns what an update takes on a device of this speed, after a last backward of backward_s on one of
  // speed 1. While that computes beside the all-reduce, the link takes its share of the core from it, which
  // counts as time of the update.
  double update_s(double speed, double backward_s) const {
    return work_s / speed + gather_s + core_share * std::min(reduce_s, backward_s / speed);
  }
};
// Returns those of a stage with so many replicas, whose gradients cross this link. `sharded` says whether
// they share out the optimiser's state.
UpdateTimes update_times(const StageSum&, int replicas, const Link&, bool sharded);

// The number of micro-batches that a rank has begun and not finished depends on its place in the pipeline.
struct PipelinePlace {
  int microbatches = 1;  // of the step
  int devices = 1;       // of all stages, each counted once a stage
  int devices_left = 1;  // of this stage and all later ones
  int replicas = 1;      // of this stage
};
// The schedule decides that number, so planners are handed its rule.
using InFlight = std::function<int(const PipelinePlace&)>;
// With 1F1B it is at most as many as there are devices from this stage on, shared by the stage's replicas.
int one_f_one_b_in_flight(const PipelinePlace&);
// With GPipe it is all M, shared by the stage's replicas.
int all_in_flight(const PipelinePlace&);

}  // namespace antichain
