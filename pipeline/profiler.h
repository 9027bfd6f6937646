// The profiler prices a graph's nodes by running them the way a stage runs them: the whole model, forward and
// backward, node after node, on one rank, with cold caches where the run has cold caches.
//
// Profiles are taken under the load of the run: every rank of the job measures at the same time, and rank 0's
// figures count.
#pragma once

#include "partition/profile.h"
#include "pipeline/transport.h"

namespace antichain {

struct MeasureOptions {
  int microbatches = 1;  // of the run: with more than one, weight gradients are timed accumulating
  double budget_s = 3;   // about how long to measure, after one warm-up
  int min_repeats = 5, max_repeats = 50;
};

// Collective; every rank gets the same profile. Times are medians over the repeats; the link is measured between
// neighbouring ranks.
Profile measure(const Graph& lowered, Context&, Transport& job, const MeasureOptions& = {});

}  // namespace antichain
