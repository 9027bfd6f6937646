// What every planner does at its end: from stages to a priced, checked plan.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "partition/plan/method.h"
#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"

namespace antichain {

// Error: fewer than one stage, no node to plan, more stages than nodes or devices, replicas that are no
// counts, no micro-batches, max_states below one.
void check(const PlanOptions&, const Profile&);
// Whether the bottleneck may be a boundary.
bool transfers_count(const PlanOptions&);

// Fills in what follows from stages (nodes, ranks, devices): model, method, objective, bottleneck, memory,
// and the lower bound that needs no search (all work shared by all devices; the largest node on the fastest).
// `planning_s` counts from `start`. Stages that do not fit their device are no error here: that is for
// rank_that_does_not_fit().
Plan finish_plan(const Profile&, const PlanOptions&, std::vector<PlanStage>, std::string_view method,
                 int64_t states, std::chrono::steady_clock::time_point start);
inline Plan finish_plan(const Profile& profile, const PlanOptions& options, std::vector<PlanStage> stages,
                        Method method, int64_t states, std::chrono::steady_clock::time_point start) {
  return finish_plan(profile, options, std::move(stages), name_of(method), states, start);
}

// No plan for so many devices can be faster, whatever the cut: all of them busy all the time, or, with one
// device a stage, the largest node on the fastest.
int64_t bound_without_search_ns(const Profile&, const PlanOptions&, int devices);

// The bytes that a rank's stages need together.
int64_t memory_of_rank(const Plan&, int rank);
// The first rank, stage by stage, whose stages need more memory than its device has; −1 when all fit.
int rank_that_does_not_fit(const Plan&, const Cluster&);

// The order of the graph cut after `ends[s]` nodes (inputs not counted): stage s on rank and device s.
std::vector<PlanStage> sequence_stages(const Profile&, const std::vector<int>& ends);

}  // namespace antichain
