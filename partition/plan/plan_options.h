// PlanOptions are what a planner is asked for.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "partition/plan/objective.h"
#include "partition/plan/stage_cost.h"
#include "partition/plan/steps.h"
#include "partition/profile/cluster.h"

namespace antichain {

// Replicas say how many devices a stage may have: {} means one each, {r0, r1, …} means so many in stage 0, 1,
// …
struct Replicas {
  bool automatic = false;
  std::vector<int> of_stage;
  bool off() const { return !automatic && of_stage.empty(); }
};

struct PlanOptions {
  int stages = 1;        // with automatic replicas (and for data-parallel): devices
  bool at_most = false;  // or fewer
  int chunks = 1;        // stages a rank; planners of partition/ give each rank one
  Cluster cluster;       // its devices in excess of what is asked for are left out, the best choice of them
  Objective objective = Objective::compute_or_transfer;
  Replicas replicas;
  int microbatches = 32;       // of a step: what an all-reduce is shared by, what may be in flight
  Steps steps = Steps::apart;  // in training
  InFlight in_flight = one_f_one_b_in_flight;  // of the schedule that training runs under
  int most_in_flight = 0;         // of any stage, where the schedule can do with less; 0: as above
  std::vector<std::string> cuts;  // of handsplit: the last node of every stage but the last
  // Of antichain, by the profile: nodes that one stage has, in an order that the stages keep.
  std::vector<std::vector<int>> together;
  int64_t max_states = 1'000'000;
  bool recompute = false;        // stages may recompute nodes to fit their devices
  bool shard_optimiser = false;  // replicas share out the optimiser's state (Plan::shard_optimiser)
  // pipeline/planning sets this, in bytes for each rank: what a compiled program took beside the formula and
  // the messages. Where it is given, the searches compare cuts by the sum of all three.
  std::vector<int64_t> beside_bytes = {};

  int devices() const {  // of all stages together
    const std::vector<int>& r = replicas.of_stage;
    return r.empty() ? stages : std::accumulate(r.begin(), r.end(), 0);
  }
};

}  // namespace antichain
