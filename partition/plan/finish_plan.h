// Every planner calls these functions at its end. They make a priced, checked plan from its stages.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "partition/plan/method.h"
#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"

namespace antichain {

// Throws Error for fewer than one stage, no node to plan, more stages than nodes or devices, a stage of fewer
// than one replica, no micro-batches, and max_states below one.
void check(const PlanOptions&, const Profile&);
// Throws the part of it that is about kinds of devices and loads.
void check_kinds(const PlanOptions&, const Profile&);
bool bars_nodes(const Profile&);  // whether its devices can't have some node
// Says whether the bottleneck may be a boundary.
bool transfers_count(const PlanOptions&);

// Fills in what follows from stages (nodes, ranks, devices): the model, objective, bottleneck, memory, and
// the lower bound that needs no search. Stages that do not fit their device are no error here, because
// rank_that_does_not_fit() tells the caller.
Plan finish_plan(const Profile&, const PlanOptions&, std::vector<PlanStage>, std::string_view method,
                 int64_t states);

// Returns a bound on the slowest stage: no plan for so many devices can be faster, whatever the cut. Either
// all devices are busy all the time, or, with one device a stage, the largest node is alone on the fastest.
int64_t bound_without_search_ns(const Profile&, const PlanOptions&, int devices);

// Returns the bytes that a rank's stages need together.
int64_t memory_of_rank(const Plan&, int rank);
// Returns the first rank, stage by stage, whose stages need more memory than its device has, or −1 when all
// fit.
int rank_that_does_not_fit(const Plan&, const Cluster&);
// Returns how much memory the ranks lack, summed over the ranks.
int64_t lacking_bytes(const Plan&, const Cluster&);

}  // namespace antichain
