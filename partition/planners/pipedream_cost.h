// What PipeDream's planner minimises: its own price of a plan, beside ours (partition/plan/stage_cost.h).
//
// A stage of r replicas takes (work + 4 (r − 1) / r x weights / bytes_per_s) / r: in its view each of our
// micro-batches is a minibatch, with an all-reduce of the weights of its own. Nothing that crosses a boundary
// counts, nor latency, nor memory; all devices are alike, on one level of links.
//
// D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, and the
// published code's defaults, whose all-reduce moves twice what the paper's formula says.
#pragma once

#include <cstdint>

#include "partition/plan/plan.h"
#include "partition/planners/planner.h"

namespace antichain {

// In nanoseconds, not rounded. `link`: the one level of links.
double pipedream_stage_ns(int64_t work_ns, int64_t param_bytes, int replicas, const Link& link);

// The single level its recurrence is run with: the slowest link that the devices asked for need.
const Link& pipedream_link(const PlanOptions&);

// Of the slowest stage. Devices' speeds are not looked at, as PipeDream knows of none.
double pipedream_cost_s(const Plan&, const Profile&, const PlanOptions&);

}  // namespace antichain
