// The profiler prices a graph's nodes by running them the way a stage runs them: the whole model, forward and
// backward, node after node, on one rank, with cold caches where the run has cold caches.
//
// Profiles are taken under the load of the run: every rank of the job measures at the same time, and rank 0's
// figures count.
#pragma once

#include <functional>

#include "framework/backend.h"
#include "partition/profile/profile.h"
#include "pipeline/measure/measure_progress.h"
#include "pipeline/stage/memory_need.h"
#include "pipeline/transport/transport.h"

namespace antichain {

struct MeasureOptions {
  int microbatches = 1;  // of the run: with more than one, weight gradients are timed accumulating
  double budget_s = 3;   // about how long to measure, after the warm-up
  int min_repeats = 5, max_repeats = 50;
  std::function<void(const MeasureProgress&)> progress = {};  // called often, between what is timed
  double* starved_share =
      nullptr;  // gets that of the rank that most lacked a core (pipeline/host/starved_time.h)
};

// In a step that is measured for a run of so many: two in host memory, where one node is timed after the
// other; up to eight on a device, where what a step takes besides its actions is spread over them.
int profiled_microbatches(const Backend&, int of_run);

// What each rank allocates while it measures: the whole network, whatever its share of the run will be.
MemoryNeed profiling_need(const Graph& lowered, const Backend&, int microbatches_of_run);

// Collective; every rank gets the same profile. Times are medians over the repeats; the link is measured
// between neighbouring ranks, over the transport that carries tensors in training.
Profile measure(const Graph& lowered, Context&, Transport& tensors, const MeasureOptions& = {});

}  // namespace antichain
