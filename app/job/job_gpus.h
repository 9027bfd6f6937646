// What the ranks of a job see of their hosts' GPUs, and what of that costs time: GPUs that ranks share, GPUs
// that can't reach each other because each rank sees its own alone, ranks that are bound to too few cores.
#pragma once

#include <string>
#include <vector>

#include "app/job/job.h"

namespace antichain {

struct RankGpu {
  std::string host, gpu;        // by its place on the bus
  int visible = 0;              // GPUs that the rank sees
  int cores = 0, of_cores = 0;  // that it may run on, of those of its host
};

// Collective; on rank 0 those of all ranks, and none where ranks compute in host memory.
std::vector<RankGpu> job_gpus(const Rank&);

// "2 visible to each rank, each of which has one of its own"
std::string describe(const std::vector<RankGpu>&);
// One sentence each.
std::vector<std::string> warnings_of(const std::vector<RankGpu>&);

}  // namespace antichain
