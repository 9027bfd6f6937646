// The profiler measures the costs of a graph's nodes by running them as a stage does: the whole model,
// forward and backward, node after node, on one rank. Caches are cold where they are cold in the run.
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
  std::shared_ptr<const Optimiser> optimiser = default_optimiser();  // the run's
  int microbatches = 1;  // in the run; with more than one, weight gradients are timed accumulating
  double budget_s = 3;   // about how long to measure, after the warm-up
  int min_repeats = 5, max_repeats = 50;
  std::function<void(const MeasureProgress&)> progress = {};  // called often, but not while timing
  double* starved_share = nullptr;  // set for the rank that lacked a core most (pipeline/host/core_time.h)
};

// Returns how many micro-batches a measured step has, given those of the run. In host memory there are two,
// because nodes are timed one by one. On a device there are up to eight, because the overhead of a step is
// spread over them.
int profiled_microbatches(const Backend&, int of_run);

// Returns what each rank allocates while it measures: the whole network, whatever stage it will run.
MemoryNeed profiling_need(const Graph& lowered, const Optimiser&, const Backend&, int microbatches_of_run);

// Collective; every rank gets the same profile. Times are medians over the repeats. The link is measured
// between neighbouring ranks, over the transport that carries tensors in training.
Profile measure(const Graph& lowered, Context&, Transport& tensors, const MeasureOptions& = {});

}  // namespace antichain
