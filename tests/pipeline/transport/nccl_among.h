// These are NCCL's messages between all ranks of a job, as tests take them.
#pragma once

#include <memory>

#include "pipeline/cuda/streams.h"
#include "pipeline/transport/job_transport.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/transport.h"

namespace antichain::test {

inline std::unique_ptr<MessageStream> nccl_among(const Context& context, Job& job) {
  return cuda::make_nccl_stream(context, job, [&job] { job.check_job(); });
}

// Such messages carry the job's tensors, in the order that the plan says.
inline std::unique_ptr<Transport> over_nccl(JobTransport& job, const Context& context) {
  return make_ordered_transport(job, nccl_among(context, job));
}

}  // namespace antichain::test
