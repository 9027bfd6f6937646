// NCCL's messages between all ranks of a job, as tests take them.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/cuda/streams.h"
#include "pipeline/transport/transport.h"

namespace antichain::test {

inline std::unique_ptr<MessageStream> nccl_among(const Context& context, Job& job) {
  std::vector<int> others;
  for (int rank = 0; rank < job.size(); ++rank)
    if (rank != job.rank()) others.push_back(rank);
  return cuda::make_nccl_stream(context, job, others, [&job] { job.check_job(); });
}

}  // namespace antichain::test
