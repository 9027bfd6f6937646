// Which way tensors travel: `--transport auto|mpi|nccl|ipc`. Devices without memory of their own need no choice: the job's
// transport carries their tensors as it is.
//
//   auto   NCCL where every rank has a device of its own and NCCL is there, else as ipc for the pairs that can, else mpi
//   mpi    the job's transport (MPI, or threads with --local), from page-locked host memory where a device has its own
//   nccl   from device to device, or an Error that says why not
//   ipc    ranks of one host copy into each other's devices, or an Error that says why not; between hosts as mpi
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/context.h"
#include "pipeline/peer_pairs.h"
#include "pipeline/transport.h"

namespace antichain {

enum class Way { as_it_is, staged, nccl, direct };

// What one rank brings to the choice.
struct WayFacts {
  std::string host, device;  // as DeviceStreams::device names it; empty: tensors are in host memory
  std::string messages_by;   // "NCCL 2.28.9"; empty where there is none
  std::string no_messages;   // and why
  bool peers = false;        // whether it can show its memory to others of its host, as far as it knows
};

struct WayChoice {
  Way way = Way::as_it_is;
  std::string sentence;  // what was chosen and why, for the log; empty where there was no choice
};

// A pure function of all ranks' facts. Usage Error where `asked` is "nccl" or "ipc" and it can't be. Where it is Way::direct, the
// sentence is only the reason: which ranks can has to be tried.
WayChoice choose_way(std::string_view asked, const std::vector<WayFacts>& ranks);
// What becomes of Way::direct: staged where no pair can. Usage Error where `asked` is "ipc" and some pair of a host can't.
WayChoice choose_way(std::string_view asked, const std::string& reason, const PeerPairs&);

struct ChosenTransport {
  std::unique_ptr<Transport> own;  // nullptr: the job's is used as it is
  std::string sentence;            // on every rank
  std::string way() const;         // the sentence without its reason; empty where tensors are in host memory
  Transport& over(Transport& job) const { return own ? *own : job; }
};

// Collective. Context and job must outlive it.
ChosenTransport choose_transport(const Context&, Transport& job, std::string_view asked);

}  // namespace antichain
