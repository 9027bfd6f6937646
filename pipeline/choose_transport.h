// Which way tensors travel: `--transport auto|mpi|nccl`. Devices without memory of their own need no choice: the job's
// transport carries their tensors as it is.
//
//   auto   NCCL where every rank has a device of its own and NCCL is there, else mpi
//   mpi    the job's transport (MPI, or threads with --local), from page-locked host memory where a device has its own
//   nccl   from device to device, or an Error that says why not
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/context.h"
#include "pipeline/transport.h"

namespace antichain {

enum class Way { as_it_is, staged, nccl };

// What one rank brings to the choice.
struct WayFacts {
  std::string host, device;  // as DeviceStreams::device names it; empty: tensors are in host memory
  std::string messages_by;   // "NCCL 2.28.9"; empty where there is none
  std::string no_messages;   // and why
};

struct WayChoice {
  Way way = Way::as_it_is;
  std::string sentence;  // what was chosen and why, for the log; empty where there was no choice
};

// A pure function of all ranks' facts. Usage Error where `asked` is "nccl" and it can't be.
WayChoice choose_way(std::string_view asked, const std::vector<WayFacts>& ranks);

struct ChosenTransport {
  std::unique_ptr<Transport> own;  // nullptr: the job's is used as it is
  std::string sentence;            // on every rank
  Transport& over(Transport& job) const { return own ? *own : job; }
};

// Collective. Context and job must outlive it.
ChosenTransport choose_transport(const Context&, Transport& job, std::string_view asked);

}  // namespace antichain
