// This file collects what the ranks of a job see of their hosts' GPUs, and finds what costs time: GPUs that
// ranks share, GPUs that can't reach each other because each rank sees only its own, and ranks that are bound
// to too few cores.
#pragma once

#include <string>
#include <vector>

#include "app/job/job.h"

namespace antichain {

struct RankGpu {
  std::string host, gpu;        // the GPU by its bus address
  int visible = 0;              // GPUs that the rank sees
  int cores = 0, of_cores = 0;  // cores that it may run on, out of its host's
};

// Collective. Rank 0 gets those of all ranks, or none where ranks compute in host memory.
std::vector<RankGpu> job_gpus(const Rank&);

// Returns "2 visible to each rank, each of which has one of its own".
std::string describe(const std::vector<RankGpu>&);
// Returns one sentence for each problem.
std::vector<std::string> warnings_of(const std::vector<RankGpu>&);

}  // namespace antichain
