// The choice of the way in which tensors travel, as pure functions of what is known of all ranks: first what
// is worth a try, then what became of it. Pairs of ranks on one host copy from device to device where they
// can: that takes no processor of the device, no order, and next to nothing of the host. What pairs are left
// go by messages, and else through host memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/transport/peer_pairs.h"

namespace antichain {

// What one rank brings to the choice.
struct WayFacts {
  std::string host, device;  // as DeviceStreams::device names it; empty: tensors are in host memory
  std::string messages_by;   // "NCCL 2.28.9"; empty where there is none
  std::string no_messages;   // and why
  bool peers = false;        // whether it can show its memory to others of its host, as far as it knows
  std::string process;       // by which threads of one are told; empty: has one of its own
};

// What is worth a try, and why the others are not: one sentence's end without line breaks, or empty.
struct Ways {
  bool copies = false, messages = false;
  std::string no_copies, no_messages;
  std::string messages_by;
  std::string without;  // nothing to choose: what to say of it, which may be nothing
  bool as_it_is = false;
};

// Usage Error where `asked` ("auto", "mpi", "nccl" or "ipc") can't be.
Ways ways_to_try(std::string_view asked, const std::vector<WayFacts>& ranks);

enum class Way { as_it_is, staged, messages, copies, copies_and_messages };

struct WayChoice {
  Way way = Way::as_it_is;
  std::string sentence;  // what was chosen and why, for the log; empty where there was no choice
};

// `pairs`: who can copy, nullptr where that was not tried; `failure`: why messages could not be had, where
// they were. Usage Error where `asked` is "ipc" and some pair of a host can't, or "nccl" and messages failed.
WayChoice choose_way(std::string_view asked, const Ways&, const PeerPairs* pairs, const std::string& failure);

}  // namespace antichain
