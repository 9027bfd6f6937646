// Planners that cut the network contiguously share these functions. They see it as a sequence: its nodes in
// graph order.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/plan/finish_plan.h"
#include "partition/search/cut_graph.h"

namespace antichain {

// Calls check(), and checks that nothing but sequences is asked for. Throws a usage Error naming the methods
// that replicate.
CutGraph sequence_graph(const Profile&, const PlanOptions&, Method method);

// Returns the number of parts of the sequence: as many as were asked for, or fewer when there are fewer nodes
// and `at_most` allows it.
int sequence_parts(const PlanOptions&, const CutGraph&);

// Returns sums[i], the sum of the first i prices.
std::vector<int64_t> running_sums(const std::vector<int64_t>& prices);

// Returns a plan with stage s, up to node ends[s] of the sequence, on rank and device s.
Plan sequence_plan(const Profile&, const PlanOptions&, const std::vector<int>& ends, Method method,
                   std::chrono::steady_clock::time_point start);

}  // namespace antichain
