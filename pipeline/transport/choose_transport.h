// Which way tensors travel: `--transport auto|mpi|nccl|ipc`. Devices without memory of their own need no
// choice: the job's transport carries their tensors as it is.
//
//   auto   as ipc for the pairs that can; NCCL for the others, where every rank is a process with a device of
//          its own; else as mpi
//   mpi    the job's transport (MPI, or threads with --local), from page-locked host memory where a device
//          has its own
//   nccl   from device to device by NCCL alone, or an Error that says why not
//   ipc    ranks of one host copy into each other's devices, or an Error that says why not; between hosts as
//          mpi
//
// Each way is tried before the first step: what fails is said, and the next one taken.
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
