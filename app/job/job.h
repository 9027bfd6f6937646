// A job is the set of ranks that a command runs on: threads of this process (--local N), or the processes
// that mpirun started. A process without either is a job of one rank.
#pragma once

#include <functional>
#include <string>

#include "app/options/options.h"
#include "framework/context.h"
#include "pipeline/transport/job_transport.h"

namespace antichain {

struct Rank {
  JobTransport& job;
  Context& context;
  bool prints() const { return job.rank() == 0; }
};

// Collective. Rank 0 prints one line on stderr for each GPU setting that costs time (app/job/job_gpus.h), and
// one when ranks outnumber cores. Call it once the job has all it needs, so that a refused job says only why.
void warn_of_crowding(const Rank&);

// Warns on rank 0 that times are doubtful because of `how` ("rank 1 on n2 had no core for 50.0 % of its
// time"): a rank that lacks a core does not measure its own times. It does not warn twice in a process, nor
// where ranks outnumber cores. "" warns of nothing.
void warn_of_starving(const std::string& how, const Job&, const Context&);

// Runs `work` on every rank of the job, on the requested device, under the watchdog.
void run_job(const MachineOptions&, const std::function<void(Rank&)>& work);

}  // namespace antichain
