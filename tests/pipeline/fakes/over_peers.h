// This makes the transport between peers, of fake GPUs.
#pragma once

#include <memory>

#include "pipeline/cuda/streams.h"
#include "pipeline/transport/job_transport.h"
#include "pipeline/transport/peer_transport.h"
#include "tests/pipeline/fakes/fake_gpu.h"

namespace antichain::test {

// Tensors go straight into a peer's memory where the fake GPUs reach each other.
inline std::unique_ptr<Transport> over_peers(JobTransport& job, const Context& context) {
  auto peers = FakeGpu::the().make_peers(context);
  const PeerPairs pairs = find_pairs(job, *peers);
  return make_peer_transport(job, std::move(peers), cuda::make_copy_stream(context), pairs);
}

}  // namespace antichain::test
