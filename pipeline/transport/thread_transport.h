// Here ranks are threads of one process (`--local N`); one rank alone is one thread.
//
// A send leaves a handle to the tensor in the hub; the receiver copies from the sender's bytes straight into
// its own, on its own thread, so a message costs one copy and the sender nothing.
#pragma once

#include <functional>

#include "pipeline/transport/job_transport.h"

namespace antichain {

struct RunRanksOptions {
  double watchdog_s = 120;  // no progress for so long ends the process with ExitCode::watchdog; 0: never
};

// Runs `body` on n threads, one per rank, and joins them. When one throws, the others get an Error
// (ExitCode::peer_failed) in their waits, and the first original error is rethrown here.
void run_ranks(int n, const std::function<void(JobTransport&)>& body, const RunRanksOptions& = {});

}  // namespace antichain
