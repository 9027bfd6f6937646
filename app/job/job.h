// A job is the set of ranks a command runs on: threads of this process (--local N), or the processes mpirun
// started; one process without either is a job of one rank.
#pragma once

#include <functional>

#include "app/options/options.h"
#include "framework/context.h"
#include "pipeline/transport/transport.h"

namespace antichain {

struct Rank {
  Transport& transport;
  Context& context;
  bool prints() const { return transport.rank() == 0; }
};

// Collective. On rank 0, one line on stderr for each thing about GPUs that costs time (app/job/job_gpus.h),
// and one when ranks outnumber cores: once the job has what it needs, so that a job that is refused says only
// why.
void warn_of_crowding(const Rank&);

// Runs `work` on every rank of the job, on the device asked for, under the watchdog.
void run_job(const MachineOptions&, const std::function<void(Rank&)>& work);

}  // namespace antichain
