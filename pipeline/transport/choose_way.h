// These pure functions of the facts of all ranks choose how tensors travel: first what is worth trying, then
// what to use given the results. Pairs of ranks on one host copy from device to device where they can, which
// takes no processor of the device, no order, and hardly any work of the host. The other pairs use messages,
// or else host memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/transport/peer_pairs.h"

namespace antichain {

// WayFacts is what one rank contributes to the choice.
struct WayFacts {
  std::string host, device;  // as DeviceStreams::device names it; empty: tensors are in host memory
  std::string messages_by;   // "NCCL 2.28.9"; empty where there is none
  std::string no_messages;   // and why
  bool peers = false;        // whether it can show its memory to others of its host, as far as it knows
  std::string process;       // by which threads of one are told; empty: has one of its own
};

// Ways says what is worth trying, and why the rest is not: the end of a sentence without line breaks, or "".
struct Ways {
  bool copies = false, messages = false;
  std::string no_copies, no_messages;
  std::string messages_by;
  std::string without;  // nothing to choose: what to say of it, which may be nothing
  bool as_it_is = false;
};

// Throws a usage Error where `asked` ("auto", "mpi", "nccl" or "ipc") is impossible.
Ways ways_to_try(std::string_view asked, const std::vector<WayFacts>& ranks);

enum class Way { as_it_is, staged, messages, copies, copies_and_messages };

struct WayChoice {
  Way way = Way::as_it_is;
  std::string sentence;  // what was chosen and why, for the log; empty where there was no choice
};

// `pairs` says which ranks can copy, and is nullptr where that was not tried. `failure` says why messages
// failed, if they did. Throws a usage Error where `asked` is "ipc" and some pair of a host can't copy, or
// "nccl" and messages failed.
WayChoice choose_way(std::string_view asked, const Ways&, const PeerPairs* pairs, const std::string& failure);

}  // namespace antichain
