// Chooses how tensors travel, by what all ranks say of themselves: by messages from device to device where
// every rank can send them, else through host memory. These functions have no other input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antichain {

// WayFacts is what one rank contributes to the choice.
struct WayFacts {
  std::string host, device;  // as DeviceStreams::device names it; empty: tensors are in host memory
  std::string messages_by;   // "NCCL 2.28.9"; empty where there is none
  std::string no_messages;   // and why
  std::string process;       // by which threads of one are told; empty: has one of its own
};

enum class Way { as_it_is, staged, messages };

struct WayChoice {
  Way way = Way::as_it_is;
  std::string sentence;  // what was chosen and why, for the log; empty where there was no choice
};

// Throws a usage Error where `asked` ("auto", "mpi" or "nccl") is impossible.
WayChoice choose_way(std::string_view asked, const std::vector<WayFacts>& ranks);

// Returns the way to take after messages were chosen and failed. Throws a usage Error where `asked` is
// "nccl".
WayChoice way_without_messages(std::string_view asked, const std::string& failure);

}  // namespace antichain
