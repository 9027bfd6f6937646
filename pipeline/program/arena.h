// An arena lays tensors with known lifetimes over each other in one block of memory, so that a stage
// allocates once and never again.
//
// Time is a count of kernel calls. Two tensors whose lifetimes do not touch may share bytes. Placement is
// first fit by decreasing size, the usual greedy answer to dynamic storage allocation (Pisarchyk and Lee,
// "Efficient Memory Management for Deep Neural Net Inference", MLSys workshop on on-device learning, 2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace antichain {

struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;  // kernel calls, both included
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // one per lifetime, multiples of 64
  int64_t bytes = 0;             // of the whole arena
};

ArenaLayout lay_out(std::span<const Lifetime>);
// Returns the most bytes that live at once: no arena is smaller.
int64_t most_alive_bytes(std::span<const Lifetime>);

}  // namespace antichain
