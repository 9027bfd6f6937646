// A JobTransport is a rank of a job together with the job's own transport, which carries tensors in host
// memory. There are three: ranks that are threads (thread_transport.h), ranks that are MPI processes
// (mpi_transport.h), and one rank alone (solo_transport.h).
#pragma once

#include "pipeline/transport/job.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class JobTransport : public Job, public Transport {
 public:
  JobTransport() : Transport(static_cast<Job&>(*this)) {}
  using Job::rank;
  using Job::size;
};

}  // namespace antichain
