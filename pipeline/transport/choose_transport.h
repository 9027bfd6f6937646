// `--transport auto|mpi|nccl` chooses how tensors travel between ranks. Devices without memory of their own
// need no choice, because the job's transport carries their tensors.
//
//   auto   is NCCL where every rank is a process with a device of its own and NCCL, and otherwise mpi
//   mpi    is the job's transport (MPI, or threads with --local), through page-locked host memory where a
//          device has its own
//   nccl   is NCCL, from device to device, or an Error that says why not
//
// NCCL is tried before the first step. If it fails, the sentence says so, and auto goes through host memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "framework/context.h"
#include "pipeline/transport/choose_way.h"
#include "pipeline/transport/transport.h"

namespace antichain {

struct ChosenTransport {
  std::unique_ptr<Transport> own;  // nullptr: the job's is used as it is
  std::string sentence;            // on every rank
  std::string way() const;         // the sentence without its reason; empty where tensors are in host memory
  Transport& over(Transport& job) const { return own ? *own : job; }
};

// Collective. Context and job must outlive it.
ChosenTransport choose_transport(const Context&, Transport& job, std::string_view asked);

}  // namespace antichain
