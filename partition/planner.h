// Planners: from a priced network and a cluster to a plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "partition/plan.h"

namespace antichain {

struct PlanOptions {
  int stages = 1;
  Link link;                                      // between neighbouring stages; 0 bytes/s: free
  std::string objective = "compute-or-transfer";  // or "compute"
  int64_t max_states = 1'000'000;
};

// Error when there are more stages than nodes, or no node at all, or the objective is unknown.
using Planner = Plan (*)(const Profile&, const PlanOptions&);

Plan plan_antichain(const Profile&, const PlanOptions&);  // exact: partition/antichain_planner.cpp
Plan plan_uniform(const Profile&, const PlanOptions&);    // equal node counts, in graph order

// Error listing the methods there are.
Planner planner(std::string_view method);
std::vector<std::string> planner_names();

}  // namespace antichain
