// Cuts: a nested sequence of down-sets, and what every planner does with one.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "partition/antichain_dag.h"
#include "partition/planner.h"

namespace antichain {

// S + 1 states of an antichain DAG, from the empty one to the full one; stage s is what cuts[s + 1] adds to cuts[s].
using Cuts = std::vector<int>;

// The slowest stage, or boundary when transfers count.
int64_t bottleneck_ns(const AntichainDag&, const Cuts&, bool transfers_count);

// What the objective's name says. Error listing the names.
bool transfers_count(const PlanOptions&);

// Error: fewer than one stage, no node to plan, more stages than nodes, max_states below one.
void check(const PlanOptions&, const CutGraph&, const std::string& model);

// One rank per stage, in order. `planning_s` counts from `start`.
Plan to_plan(const Profile&, const PlanOptions&, const AntichainDag&, const Cuts&, const std::string& method,
             std::chrono::steady_clock::time_point start);

}  // namespace antichain
