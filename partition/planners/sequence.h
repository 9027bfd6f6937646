// The network as a sequence, its nodes in graph order: what the planners that cut it contiguously share.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/plan/finish_plan.h"
#include "partition/search/cut_graph.h"

namespace antichain {

// check(), and that nothing but sequences is asked for. Usage Error naming the methods that replicate.
CutGraph sequence_graph(const Profile&, const PlanOptions&, Method method);

// Parts of the sequence: what was asked for; fewer when there are fewer nodes and `at_most` allows it.
int sequence_parts(const PlanOptions&, const CutGraph&);

// sums[i]: of the first i prices.
std::vector<int64_t> running_sums(const std::vector<int64_t>& prices);

// Stage s, up to node ends[s] of the sequence, on rank and device s.
Plan sequence_plan(const Profile&, const PlanOptions&, const std::vector<int>& ends, Method method,
                   std::chrono::steady_clock::time_point start);

}  // namespace antichain
