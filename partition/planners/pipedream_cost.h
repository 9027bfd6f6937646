// PipeDream's planner minimises a price of its own, which differs from ours (partition/plan/stage_cost.h).
//
// A stage of r replicas takes (work + 4 (r − 1) / r x weights / bytes_per_s) / r. In its view each of our
// micro-batches is a minibatch, with an all-reduce of the weights of its own. It counts nothing that crosses
// a boundary, no latency and no memory; all devices are alike, on one level of links.
//
// Source: D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, and
// the published code's defaults, whose all-reduce moves twice what the paper's formula says.
#pragma once

#include <cstdint>

#include "partition/plan/plan.h"
#include "partition/planners/planner.h"

namespace antichain {

// Returns nanoseconds, not rounded. `link` is the one level of links.
double pipedream_stage_ns(int64_t work_ns, int64_t param_bytes, int replicas, const Link& link);

// Returns the single level that its recurrence is run with: the slowest link that the requested devices need.
const Link& pipedream_link(const PlanOptions&);

}  // namespace antichain
