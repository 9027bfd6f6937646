// Planners: from a priced network and a cluster to a plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "partition/cluster.h"
#include "partition/plan.h"
#include "partition/stage_cost.h"

namespace antichain {

// How many devices a stage may have. {}: one each. {r0, r1, …}: so many in stage 0, 1, …
struct Replicas {
  bool automatic = false;
  std::vector<int> of_stage;
  bool off() const { return !automatic && of_stage.empty(); }
};

struct PlanOptions {
  int stages = 1;        // with automatic replicas (and for data-parallel): devices
  bool at_most = false;  // or fewer
  Cluster cluster;       // its devices in excess of what is asked for are left out, the best choice of them
  std::string objective = "compute-or-transfer";  // or "compute"
  Replicas replicas;
  int microbatches = 32;  // of a step: what an all-reduce is shared by, what may be in flight
  InFlight in_flight = InFlight::one_f_one_b;
  std::vector<std::string> cuts;  // of handsplit: the last node of every stage but the last
  int64_t max_states = 1'000'000;
};

// Error when there are more stages than nodes or devices, or no node at all, or the objective is unknown, or no plan fits
// the devices' memory (then with the smallest memory that would do).
using Planner = Plan (*)(const Profile&, const PlanOptions&);

Plan plan_antichain(const Profile&, const PlanOptions&);      // exact
Plan plan_uniform(const Profile&, const PlanOptions&);        // equal node counts, in graph order
Plan plan_cudasize(const Profile&, const PlanOptions&);       // balances memory, in graph order
Plan plan_hashrate(const Profile&, const PlanOptions&);       // balances FLOPs, in graph order
Plan plan_handsplit(const Profile&, const PlanOptions&);      // cuts chosen by a person
Plan plan_block(const Profile&, const PlanOptions&);          // block partition of the sequence of times
Plan plan_pipedream(const Profile&, const PlanOptions&);      // PipeDream's recurrence and its own cost
Plan plan_data_parallel(const Profile&, const PlanOptions&);  // one stage, every device a replica

// Error listing the methods there are.
Planner planner(std::string_view method);
std::vector<std::string> planner_names();

}  // namespace antichain
